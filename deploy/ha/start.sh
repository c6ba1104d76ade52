#!/usr/bin/env bash
# A cluster for trying out high availability on one Debian machine: etcd, three nodes with Patroni and Postgres, HAProxy.
# Install before (in runlevel 1 packages start none of their services):
#   RUNLEVEL=1 apt-get install --no-install-recommends etcd-server haproxy patroni postgresql-15
# Ctrl-C stops everything. A node that is killed is started again, as systemd does it.
#
#   HA_DIR=/var/tmp/content-ha   data and logs; started with the same folder again, the cluster continues
#   HA_NETWORK=127.0.60          nodes are .1, .2 and .3 of it, HAProxy and etcd .10; all of 127.0.0.0/8 is this machine
#   HA_TTL=5                     seconds until a leader that does not answer is replaced
#   HA_RESTART=1                 seconds until a node that was killed is started again
#   REPAIR_AFTER=20              seconds until a standby that cannot follow is copied again (repair-standby.sh)
#   POSTGRES_PORT=5432 PATRONI_PORT=8008   of all nodes
#   GATEWAY_A, GATEWAY_B, GATEWAY_C   host:port of the gateways behind HAProxy
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=${HA_DIR:-/var/tmp/content-ha}
network=${HA_NETWORK:-127.0.60}
ttl=${HA_TTL:-5}
PATH=$PATH:/usr/sbin

for program in etcd patroni patronictl haproxy psql /usr/lib/postgresql/15/bin/postgres; do
  command -v "$program" > /dev/null || { echo "$program is not installed. Packages: etcd-server haproxy patroni postgresql-15" >&2; exit 1; }
done

# Postgres refuses to run as root.
as=()
if [ "$(id -u)" = 0 ]; then as=(setpriv --reuid=postgres --regid=postgres --init-groups); fi
mkdir -p "$dir"
chmod 711 "$dir"
[ "${#as[@]}" = 0 ] || chown postgres: "$dir"
exec 9> "$dir/lock"
flock --nonblock 9 || { echo "A cluster in $dir is running already. Stop it, or set HA_DIR and HA_NETWORK." >&2; exit 1; }
cp "$here/patroni.yml" "$here/haproxy.cfg" "$here/repair-standby.sh" "$dir/"
chmod 644 "$dir/patroni.yml" "$dir/haproxy.cfg"
chmod 755 "$dir/repair-standby.sh"
cd "$dir"
secret() {
  [ -s "$1" ] || (umask 077 && od -An -N16 -tx1 /dev/urandom | tr -d ' \n' > "$1")
  cat "$1"
}
password=$(secret password)
jwt_secret=$(secret jwt-secret)

export HOME=$dir REPAIR_AFTER=${REPAIR_AFTER:-20} REPAIR_INTERVAL=${REPAIR_INTERVAL:-2}
export NODE_A=$network.1 NODE_B=$network.2 NODE_C=$network.3
export POSTGRES_PORT=${POSTGRES_PORT:-5432} PATRONI_PORT=${PATRONI_PORT:-8008}
export WRITE_ADDRESS=$network.10:5000 HTTP_ADDRESS=$network.10:8000 ADMIN_SOCKET=$dir/haproxy.sock
export PATRONI_ETCD3_HOSTS=$network.10:2379
export PATRONI_SUPERUSER_PASSWORD=$password PATRONI_REPLICATION_PASSWORD=$password
patronictl=("${as[@]}" patronictl --config-file patroni.yml)

# Each process is the leader of a process group, which ends with it.
set -m
nodes=() others=()
end() {
  for job; do kill -TERM -- "-$job" 2> /dev/null || true; done
  wait "$@" || true
}
stop() {
  trap - EXIT INT TERM
  # Patroni needs etcd until it has stopped its Postgres.
  end "${nodes[@]}"
  end "${others[@]}"
}
trap stop EXIT
trap 'exit 0' INT TERM
echo "starting; logs are in $dir" >&2

"${as[@]}" etcd --name one --data-dir "$dir/etcd" --log-outputs "$dir/etcd.log" --logger zap \
  --listen-client-urls "http://$network.10:2379" --advertise-client-urls "http://$network.10:2379" \
  --listen-peer-urls "http://$network.10:2380" --initial-advertise-peer-urls "http://$network.10:2380" \
  --initial-cluster "one=http://$network.10:2380" > /dev/null 2>&1 &
others+=($!)

node() {
  export PATRONI_NAME=$1 PATRONI_POSTGRESQL_DATA_DIR=$dir/$1/data PATRONI_POSTGRESQL_PGPASS=$dir/$1/pgpass
  export PATRONI_POSTGRESQL_LISTEN=$2:$POSTGRES_PORT PATRONI_POSTGRESQL_CONNECT_ADDRESS=$2:$POSTGRES_PORT
  export PATRONI_RESTAPI_LISTEN=$2:$PATRONI_PORT PATRONI_RESTAPI_CONNECT_ADDRESS=$2:$PATRONI_PORT
  # Waits for Patroni, which is told as well.
  trap 'exit 0' TERM
  umask 077
  "${as[@]}" mkdir -p "$dir/$1/data"
  cd "$dir/$1"
  PATRONI_CONFIG=../patroni.yml "${as[@]}" ../repair-standby.sh >> repair.log 2>&1 &
  while :; do
    "${as[@]}" patroni ../patroni.yml >> patroni.log 2>&1 || true
    sleep "${HA_RESTART:-1}"
  done
}
for each in a:$NODE_A b:$NODE_B c:$NODE_C; do
  node "${each%%:*}" "${each#*:}" &
  nodes+=($!)
done
"${as[@]}" haproxy -db -f haproxy.cfg >> haproxy.log 2>&1 &
others+=($!)

await() { until "$@" > /dev/null 2>&1; do sleep 0.2; done; }
sql() { "${as[@]}" env PGPASSWORD="$password" PGCONNECT_TIMEOUT=2 psql -XAtq -v ON_ERROR_STOP=1 \
  "host=$NODE_A,$NODE_B,$NODE_C port=$POSTGRES_PORT user=postgres dbname=$1 target_session_attrs=read-write" -c "$2"; }
await sql postgres 'select 1'
configure() { await "${patronictl[@]}" edit-config --force --quiet "$@"; }
configure -s "ttl=$ttl" -s loop_wait=1 -s "retry_timeout=$(((ttl - 1) / 2))"
if [ "$(sql postgres "select count(*) from pg_database where datname = 'content'")" = 0 ]; then
  sql postgres "create role owner superuser login password '$password'"
  sql postgres "create role authenticator noinherit login password '$password'"
  sql postgres "create database content owner owner encoding 'UTF8' template template0"
fi
# The slot of the change stream, which Patroni copies to the standbys: subscribers resume after a failover.
slot=changes_$(sql postgres "select oid from pg_database where datname = 'content'")
configure -s "slots.$slot.type=logical" -s "slots.$slot.database=content" -s "slots.$slot.plugin=pgoutput"
# A standby restarts to take it over.
for node in a b c; do
  await "${as[@]}" psql -XAtq -h "$dir/$node" -p "$POSTGRES_PORT" -U postgres -v ON_ERROR_STOP=1 postgres \
    -c "select 1 / (select count(*) from pg_replication_slots where slot_name = '$slot')"
done
until "${patronictl[@]}" list --format tsv | grep -q 'Sync Standby'; do sleep 0.2; done

# For the service: set -a; . hosts.env
hosts=$NODE_A:$POSTGRES_PORT,$NODE_B:$POSTGRES_PORT,$NODE_C:$POSTGRES_PORT
settings() {
  for pair in DATABASE_URL=authenticator OWNER_DATABASE_URL=owner; do
    echo "${pair%%=*}='postgresql://${pair#*=}:$password@$1/content'"
  done
  echo "JWT_SECRET='$jwt_secret'"
}
(umask 077 && settings "$hosts" > hosts.env && settings "$WRITE_ADDRESS" > haproxy.env)
echo "ready
  Postgres   $hosts, the primary at $WRITE_ADDRESS
  Patroni    PATRONI_ETCD3_HOSTS=$PATRONI_ETCD3_HOSTS patronictl --config-file $dir/patroni.yml list
  gateways   http://$HTTP_ADDRESS
  settings   set -a; . $dir/hosts.env      (through HAProxy: haproxy.env)"
wait
