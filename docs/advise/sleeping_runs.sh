#!/bin/sh
# The log that predicts, and the six settings that are predicted from it: about nine minutes. Usage: sleeping_runs.sh FOLDER
set -e
here=$(cd "$(dirname "$0")" && pwd)
run() {
  name=$1
  shift
  echo "$name $(python3 "$here/sleeping_trainer.py" --out "$folder/$name" "$@")"
}
folder=${1:?a folder}
run log --seconds 30 --seed 1
run base --seconds 75 --seed 2
run staleness_0 --seconds 75 --seed 3 --staleness 0
run slots_16 --seconds 75 --seed 4 --slots 16
run group_8 --seconds 75 --seed 5 --group 8
run update_1s --seconds 75 --seed 6 --update 1.0
run sync_400ms --seconds 75 --seed 7 --sync 0.4 --staleness 1
