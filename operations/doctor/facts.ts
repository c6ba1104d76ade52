import pg from "pg";
import { CLAIMS_HOOK_ROLE } from "#accounts";
import { type Catalog, exposedSchemas } from "#catalog";
import type { Config } from "#config";
import { parseServers, toPgConnectionString } from "#config/connection-string";
import { KEEPER_SLOT_NAME } from "#live/stream";
import { quotedName, withServiceClient } from "#postgres/client";
import { type ConnectionCapabilities, probeSessions } from "#postgres/database";

/** The facts that the checks examine. */
export type DoctorFacts = {
  readonly catalog: Catalog;
  readonly config: Config;
  /** The roles of anonymous and of signed-in callers. */
  readonly clients: readonly string[];
  /** True if the collection `/users` exists, which USERS_ACCESS applies to. */
  readonly servesUsers: boolean;
  readonly login: LoginFacts;
  readonly replication: ReplicationFacts;
  readonly server: ServerFacts;
  /** SQL that creates the event trigger for schema changes; null if it exists, or if the service does not listen. */
  readonly missingTriggerSql: string | null;
  readonly replicas: readonly ReplicaFacts[];
  readonly hosts: readonly HostFacts[];
};

type LoginFacts = {
  readonly name: string;
  readonly superuser: boolean;
  readonly bypassesRowSecurity: boolean;
  readonly inherits: boolean;
  /** True if the login owns exposed tables, and therefore bypasses their policies. */
  readonly ownsTables: boolean;
  readonly sessions: ConnectionCapabilities;
  /** True if the connection goes over a network without TLS. */
  readonly isInTheOpen: boolean;
};

export type ReplicationFacts = {
  readonly walLevel: string;
  /** False if max_slot_wal_keep_size is unlimited. */
  readonly isBounded: boolean;
  /** True if the owner may use logical replication. */
  readonly mayReplicate: boolean;
  /** True if new tables are not published automatically, because the owner may not create event triggers. */
  readonly isByHand: boolean;
  /** The published tables as `schema.name`, with their published columns; null for all columns, as before Postgres 15. */
  readonly published: ReadonlyMap<string, readonly string[] | null> | null;
  /** True if stored generated columns are published (since Postgres 18). */
  readonly hasGenerated: boolean;
  /** `publish_via_partition_root`; null if there is no publication. */
  readonly isViaRoot: boolean | null;
  readonly isPooled: boolean;
};

type ServerFacts = {
  /** `server_version`: "18.4", or with a suffix of the distribution or of the engine */
  readonly release: string;
  /** True if the session is on a standby, which takes no writes. */
  readonly isStandby: boolean;
  /** The number of standbys that stream from the server. */
  readonly standbys: number;
  /** Schemas of the search path in which every role may create objects. */
  readonly openSchemas: readonly string[];
  readonly clients: readonly {
    readonly name: string;
    readonly superuser: boolean;
    readonly bypassesRowSecurity: boolean;
    readonly mayLogIn: boolean;
  }[];
  readonly slots: readonly {
    readonly name: string;
    readonly isActive: boolean;
    readonly isLost: boolean;
    /** True for the slot of a standby. */
    readonly isPhysical: boolean;
    readonly retainedBytes: number;
    /** True if standbys have a copy of the slot, so that it survives a failover; null before Postgres 17. */
    readonly isFailover: boolean | null;
    /** True if the service keeps the slot, so that clients can resume. */
    readonly isKeeper: boolean;
  }[];
  readonly spareSlots: { readonly slots: number; readonly senders: number };
  /** SECURITY DEFINER functions in other schemas without a fixed search_path. */
  readonly looseDefiners: readonly { readonly signature: string; readonly owner: string }[];
  /** The function of CLAIMS_HOOK; null if there is none. */
  readonly claimsHook: ClaimsHookFacts | null;
  /** The roles of function calls that wait, which the login of requests cannot set. */
  readonly unusableTaskRoles: readonly { readonly role: string; readonly tasks: number }[];
  /** The workers of Citus, with the roles of callers that may not log in there; null if a worker does not answer. */
  readonly workers: readonly { readonly name: string; readonly missingLogins: readonly string[] | null }[];
};

type ClaimsHookFacts = {
  readonly name: string;
  readonly role: string;
  /** True if there is a function of one jsonb argument that returns jsonb. */
  readonly exists: boolean;
  /** True if the role of hooks may execute the function. */
  readonly isExecutable: boolean;
  /** True if the owner may become the role of hooks. */
  readonly isRoleUsable: boolean;
  /** The roles of callers that may execute the function too. */
  readonly callers: readonly string[];
};

export type ReplicaFacts = {
  readonly host: string;
  /** True if the replica is set to copy the primary's replication slots; null if it cannot copy them, or is away. */
  readonly copiesSlots: boolean | null;
  readonly status: "well" | "away" | "primary" | "without feedback";
};

/** One of several hosts of a connection string. */
export type HostFacts = ReplicaFacts & { readonly setting: string };

const LOGIN_SQL = `
  select rolname as name, rolsuper as superuser, rolbypassrls as "bypassesRowSecurity", rolinherit as inherits,
    exists (
      select from pg_catalog.pg_class where relowner = pg_roles.oid and relkind in ('r', 'p') and relnamespace = any ($1::pg_catalog.text[]::pg_catalog.regnamespace[])
    ) as "ownsTables",
    exists (
      select from pg_catalog.pg_stat_ssl where pid = pg_catalog.pg_backend_pid() and not ssl and pg_catalog.inet_client_addr() is not null
        and not (pg_catalog.inet_client_addr() <<= '127.0.0.0/8' or pg_catalog.inet_client_addr() = '::1')
    ) as "isInTheOpen"
  from pg_catalog.pg_roles where rolname = session_user`;

const REPLICATION_SQL = `
  select pg_catalog.current_setting('wal_level') as "walLevel", pg_catalog.current_setting('max_slot_wal_keep_size') <> '-1' as "isBounded",
    (select rolsuper or rolreplication from pg_catalog.pg_roles where rolname = session_user)
      -- Amazon's way to let somebody replicate.
      or exists (select from pg_catalog.pg_roles where rolname = 'rds_replication' and pg_catalog.pg_has_role(oid, 'member')) as "mayReplicate",
    exists (select from pg_catalog.pg_proc join pg_catalog.pg_namespace on pg_namespace.oid = pronamespace
      where nspname = 'content_service' and proname = 'tg__publish_rows'
        and pg_proc.oid not in (select evtfoid from pg_catalog.pg_event_trigger)) as "isByHand",
    (select pubviaroot from pg_catalog.pg_publication where pubname = $1) as "isViaRoot",
    coalesce((select pg_catalog.to_json(publication.*) ->> 'pubgencols' = 's' from pg_catalog.pg_publication as publication where pubname = $1), false) as "hasGenerated",
    (select pg_catalog.json_object_agg(schemaname || '.' || tablename, pg_catalog.to_json(published.*) -> 'attnames')
      from pg_catalog.pg_publication_tables as published where pubname = $1) as published`;

type ReplicationRow = Omit<ReplicationFacts, "published" | "isPooled"> & {
  published: Record<string, string[] | null> | null;
};

export async function readLoginFacts(
  url: string,
  { catalog, config }: Pick<DoctorFacts, "catalog" | "config">,
): Promise<LoginFacts> {
  const exposed = exposedSchemas(catalog).map(({ name }) => quotedName(name));
  const sessions = await probeSessions(url, config);
  const { rows } = await withServiceClient(url, (login) =>
    login.query<Omit<LoginFacts, "sessions">>(LOGIN_SQL, [exposed]),
  );
  return { ...rows[0]!, sessions };
}

export async function readReplicationFacts(owner: pg.ClientBase, publication: string): Promise<ReplicationFacts> {
  const { rows } = await owner.query<ReplicationRow>(REPLICATION_SQL, [publication]);
  const { published, ...settings } = rows[0]!;
  return { ...settings, published: published && new Map(Object.entries(published)), isPooled: await isPooled(owner) };
}

const SERVER = `
  select pg_catalog.current_setting('server_version') as release, pg_catalog.pg_is_in_recovery() as "isStandby",
    (select pg_catalog.count(*)::int from pg_catalog.pg_stat_replication as stream
      where coalesce(state, 'streaming') = 'streaming' and not exists (select from pg_catalog.pg_replication_slots where active_pid = stream.pid and slot_type = 'logical')) as standbys`;
const OPEN_SCHEMAS = `
  select nspname as name from pg_catalog.pg_namespace
  where nspname = any ($1) and pg_catalog.has_schema_privilege('public', oid, 'create') order by 1`;
const CLIENTS = `
  select rolname as name, rolsuper as superuser, rolbypassrls as "bypassesRowSecurity", rolcanlogin as "mayLogIn"
  from pg_catalog.pg_roles where rolname = any ($1) order by 1`;
const SLOTS = `
  select slot_name as name, active as "isActive", wal_status = 'lost' as "isLost", slot_type = 'physical' as "isPhysical",
    coalesce(pg_catalog.pg_wal_lsn_diff(case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn() else pg_catalog.pg_current_wal_lsn() end, restart_lsn), 0)::pg_catalog.float8
      as "retainedBytes",
    (pg_catalog.to_json(slots.*) ->> 'failover')::pg_catalog.bool as "isFailover", slot_name = ${KEEPER_SLOT_NAME} as "isKeeper"
  from pg_catalog.pg_replication_slots as slots order by 1`;
const SPARE_SLOTS = `
  select pg_catalog.current_setting('max_replication_slots')::int - (select pg_catalog.count(*) from pg_catalog.pg_replication_slots)::int as slots,
    pg_catalog.current_setting('max_wal_senders')::int - (select pg_catalog.count(*) from pg_catalog.pg_stat_replication)::int as senders`;
/** The query omits functions of extensions. */
const LOOSE_DEFINERS = `
  select oid::pg_catalog.regprocedure::pg_catalog.text as signature, pg_catalog.pg_get_userbyid(proowner) as owner
  from pg_catalog.pg_proc
  where prosecdef and not exists (select from pg_catalog.unnest(proconfig) setting where pg_catalog.starts_with(setting, 'search_path='))
    and pronamespace <> all ($1::pg_catalog.text[]::pg_catalog.regnamespace[]) and pronamespace not in ('pg_catalog'::pg_catalog.regnamespace, 'information_schema'::pg_catalog.regnamespace)
    and not exists (select from pg_catalog.pg_depend where classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and objid = pg_proc.oid and deptype = 'e')
  order by 1`;

const CLAIMS_HOOK_SQL = `
  select function.oid is not null as exists,
    coalesce(pg_catalog.has_schema_privilege(hook.oid, function.pronamespace, 'usage') and pg_catalog.has_function_privilege(hook.oid, function.oid, 'execute'), false)
      as "isExecutable",
    coalesce(pg_catalog.pg_has_role(session_user, hook.oid, 'member'), false) as "isRoleUsable",
    array(
      select rolname::pg_catalog.text from pg_catalog.pg_roles where rolname = any ($3)
        and pg_catalog.has_schema_privilege(pg_roles.oid, function.pronamespace, 'usage') and pg_catalog.has_function_privilege(pg_roles.oid, function.oid, 'execute')
      order by rolname
    ) as callers
  from (values (1)) as one
  left join pg_catalog.pg_roles as hook on hook.rolname = $2
  left join pg_catalog.pg_proc as function on function.oid = pg_catalog.to_regprocedure($1 || '(jsonb)') and function.prorettype = 'pg_catalog.jsonb'::pg_catalog.regtype`;

const HAS_CALLS = `
  select from pg_catalog.pg_attribute
  where attrelid = pg_catalog.to_regclass('content_service.tasks') and attname = 'function' and pg_catalog.has_table_privilege(attrelid, 'select')`;
const UNUSABLE_TASK_ROLES = `
  select caller->>'role' as role, pg_catalog.count(*)::int as tasks
  from content_service.tasks
  where function is not null and finished_at is null and not exists (
    select from pg_catalog.pg_roles where rolname = caller->>'role'
      and pg_catalog.pg_has_role($1, oid, case when pg_catalog.current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end)
  )
  group by 1 order by 1`;

const HAS_WORKERS =
  "select from pg_catalog.pg_proc where oid = pg_catalog.to_regprocedure('pg_catalog.run_command_on_workers(text, boolean)')";
const WORKERS = `
  select nodename || ':' || nodeport as name, case when success then result::pg_catalog.json end as "missingLogins"
  from pg_catalog.run_command_on_workers(pg_catalog.format(
    'select coalesce(pg_catalog.json_agg(role), ''[]'') from pg_catalog.unnest(%L::pg_catalog.text[]) as role where role not in (select rolname from pg_catalog.pg_roles where rolcanlogin)', $1::pg_catalog.text[]
  ), true) order by 1`;

type ServerFactsRequest = {
  readonly catalog: Catalog;
  readonly clients: readonly string[];
  readonly searched: readonly string[];
  /** The function of CLAIMS_HOOK. */
  readonly claimsHook: string | null;
  /** The login of requests. */
  readonly login: string;
};

export async function readServerFacts(
  owner: pg.ClientBase,
  { catalog, clients, searched, claimsHook, login }: ServerFactsRequest,
): Promise<ServerFacts> {
  const exposed = exposedSchemas(catalog).map(({ name }) => name);
  const query = async <T extends pg.QueryResultRow>(text: string, ...values: unknown[]) =>
    (await owner.query<T>(text, values)).rows;
  const hasCalls = (await query(HAS_CALLS)).length > 0;
  const open = await query<{ name: string }>(OPEN_SCHEMAS, [...exposed, ...searched]);
  return {
    ...(await query<Pick<ServerFacts, "release" | "isStandby" | "standbys">>(SERVER))[0]!,
    openSchemas: open.map(({ name }) => name),
    clients: await query(CLIENTS, clients),
    slots: await query(SLOTS),
    spareSlots: (await query<ServerFacts["spareSlots"]>(SPARE_SLOTS))[0]!,
    looseDefiners: await query(
      LOOSE_DEFINERS,
      exposed.map((name) => quotedName(name)),
    ),
    claimsHook: claimsHook === null ? null : await readClaimsHook(owner, claimsHook, clients),
    unusableTaskRoles: hasCalls ? await query(UNUSABLE_TASK_ROLES, login) : [],
    workers: (await query(HAS_WORKERS)).length > 0 ? await query(WORKERS, clients) : [],
  };
}

async function readClaimsHook(
  owner: pg.ClientBase,
  name: string,
  clients: readonly string[],
): Promise<ClaimsHookFacts> {
  const { rows } = await owner.query<Omit<ClaimsHookFacts, "name" | "role">>(CLAIMS_HOOK_SQL, [
    quotedName(...name.split(".")),
    CLAIMS_HOOK_ROLE,
    clients,
  ]);
  return { name, role: CLAIMS_HOOK_ROLE, ...rows[0]! };
}

const REPLICA_SQL = `
  select pg_catalog.pg_is_in_recovery() as recovers, pg_catalog.current_setting('hot_standby_feedback')::pg_catalog.bool as feedback,
    case when pg_catalog.current_setting('sync_replication_slots', true) is not null then
      pg_catalog.current_setting('sync_replication_slots')::pg_catalog.bool and pg_catalog.current_setting('hot_standby_feedback')::pg_catalog.bool
        and pg_catalog.current_setting('primary_slot_name') <> ''
    end as "copiesSlots"`;

type ReplicaRow = { readonly recovers: boolean; readonly feedback: boolean; readonly copiesSlots: boolean | null };

export async function readReplicaFacts(url: string): Promise<ReplicaFacts> {
  const { host } = new pg.Client({ connectionString: url });
  try {
    const { recovers, feedback, copiesSlots } = await withServiceClient(url, async (client) => {
      const { rows } = await client.query<ReplicaRow>(REPLICA_SQL);
      return rows[0]!;
    });
    return { host, copiesSlots, status: !recovers ? "primary" : feedback ? "well" : "without feedback" };
  } catch {
    return { host, copiesSlots: null, status: "away" };
  }
}

/** Reads the hosts of a connection string. Returns none for a single host, which all other checks use. */
export function readHostFacts(setting: string, url: string): Promise<HostFacts[]> {
  const { servers } = parseServers(toPgConnectionString(url));
  if (servers.length === 1) return Promise.resolve([]);
  return Promise.all(
    servers.map(async ({ name, url: own }) => ({ ...(await readReplicaFacts(own)), host: name, setting })),
  );
}

/** True if the connection goes through a pooler, which sends process ids that are not those of Postgres backends. */
async function isPooled(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>("select pg_catalog.pg_backend_pid() as pid");
  return rows[0]!.pid !== (client as pg.ClientBase & { readonly processID: number }).processID;
}

/** A problem, and how to fix it. */
export type DoctorFinding = {
  /** `danger`: rows or privileges are accessible that should not be. `slow`: a performance problem. */
  readonly kind: "danger" | "slow" | "advice";
  readonly problem: string;
  /** SQL, or a setting to change. */
  readonly fix: string;
};
