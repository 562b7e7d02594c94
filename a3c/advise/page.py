"""The page: one file with sliders and the queueing of queueing.py in JavaScript; it needs no network."""

import html
import json
import math
from pathlib import Path

from a3c.advise import words
from a3c.advise.advice import Advice
from a3c.advise.jitter import normal_quantiles

_TEMPLATE = Path(__file__).with_name("page.html")


def page(advice: Advice) -> str:
    """Return the page whose sliders begin at these costs."""
    costs = advice.costs
    system = costs.system._replace(workers=max(1, min(advice.fed, max(advice.asked))))
    data = {
        "system": system._asdict(),
        "cycle_factors": costs.cycle_factors.tolist(),
        "service_factors": costs.service_factors.tolist(),
        "deviation": costs.deviation,
        "normal": normal_quantiles().tolist(),
        "most_workers": math.ceil(max(4 * system.n_star, *advice.asked)),
    }
    said = "".join(f"<p>{html.escape(sentence)}</p>\n" for sentence in words.sentences(advice))
    if advice.schedule is not None:
        said += f"<pre>{html.escape(advice.schedule.line)}</pre>\n"
    script = json.dumps(data).replace("</", "<\\/")
    return _TEMPLATE.read_text(encoding="utf-8").replace("<!--WORDS-->", said).replace('"DATA"', script)
