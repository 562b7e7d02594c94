"""Predicted and measured: writes docs/advise-validation.md from published tables and committed runs.

Rules, fixed before the predictions were computed:

Applied Compute: nothing is fitted. C slots, groups of 8, lognormal lengths whose spread gives the row's
E[max of 8] / E[one], a queue of q batches that drops its oldest, an update of batch * rho / C mean rollouts.

AReaL: a batch of 64, lognormal rollouts with a standard deviation of 0.5, admission by age, no sync time. Three unknowns
(slots per batch, update per rollout, tokens per batch) are fitted to the throughput at bounds 0, 1 and infinity by least
squares of relative errors; bounds 2, 4, 8 and 16 are predicted.

verl, bound on age: samples as units, batch 128, a sync every 4 updates, 16 servers with 16 samples each (at most what
may begin), partial rollouts, lognormal samples with a standard deviation of 0.5, the update and the rest of the step as at
threshold 0. The mean sample is fitted to the wait at threshold 0; wait and step at 0.1, 0.3 and 0.5 are predicted.

verl, splits: an update takes a + b / devices with a, b >= 0, through two splits; the mean sample is the geometric mean of
those that explain the two waits, with 4 samples in flight for each device of generation; the third split is predicted, for
each of the three choices. The steps are wait and update.

Sleeping trainer: costs are fitted by fit_steps to the log of its own 30 s run, with --staleness 2. A setting replaces the
options that it names and nothing else: the bound, slots, group, update or sync.
"""
