#!/usr/bin/env bash
# Copies the standby of this node from the leader again when it cannot follow any more. Patroni leaves such a standby as it is: after several
# failures in a row it may need WAL that no node has ("requested WAL segment has already been removed", "specified neither primary_conninfo
# nor restore_command").
# Runs beside Patroni on each node, as the same user and with the same environment, in the folder of patroni.yml.
#
#   REPAIR_AFTER=300     seconds without replication and without progress of recovery, while the cluster has a leader
#   REPAIR_INTERVAL=5    seconds between two checks
set -uo pipefail
after=${REPAIR_AFTER:-300} interval=${REPAIR_INTERVAL:-5}
data=$PATRONI_POSTGRESQL_DATA_DIR port=${PATRONI_POSTGRESQL_LISTEN##*:}
patronictl=(patronictl --config-file "${PATRONI_CONFIG:-patroni.yml}")

# The primary, or a standby that receives WAL.
is_replicating() {
  [ "$(PGCONNECT_TIMEOUT=2 psql -XAtq -h "$(dirname "$data")" -p "$port" -U postgres postgres \
    -c "select not pg_is_in_recovery() or exists (select from pg_stat_wal_receiver where status = 'streaming')" 2> /dev/null)" = t ]
}

# The title of the process that replays WAL names the segment, which changes every 16 MB.
replayed_segment() {
  local postmaster
  postmaster=$(head -n 1 "$data/postmaster.pid" 2> /dev/null) && ps --ppid "$postmaster" -o args= | grep -o 'startup .*'
}

# Columns: cluster, member, host, role, state, …
is_lost() {
  "${patronictl[@]}" list --format tsv 2> /dev/null | awk -F '\t' -v name="$PATRONI_NAME" '
    $4 == "Leader" && $5 == "running" && $2 != name { leader = 1 }
    $2 == name && $4 == "Replica" && $5 ~ /^(running|streaming|starting|start failed|crashed)$/ { replica = 1 }
    END { exit !(leader && replica) }'
}

since=$SECONDS segment=
while :; do
  sleep "$interval"
  now=$(replayed_segment)
  if is_replicating || [ "$now" != "$segment" ] || ! is_lost; then since=$SECONDS segment=$now; continue; fi
  [ $((SECONDS - since)) -ge "$after" ] || continue
  echo "$(date -u +%FT%TZ) $PATRONI_NAME has not followed the leader for $after s: it is copied again"
  "${patronictl[@]}" reinit --force content "$PATRONI_NAME"
  since=$SECONDS
done
