import { type CatalogColumn, type CatalogTable, exposedTables } from "#catalog";
import { isEmbedded } from "#config";
import { parseServers } from "#config/connection-string";
import { REALTIME_PUBLICATION } from "#live/stream";
import { quotedName } from "#postgres/client";
import type { ConnectionCapabilities } from "#postgres/database";
import { commandLine } from "#runtime";
import type { DoctorFacts, DoctorFinding, HostFacts, ReplicaFacts, ReplicationFacts } from "./facts.ts";

/** `server_version_num` of the first release that publishes generated columns. */
const PUBLISHES_GENERATED_SINCE = 180_000;

const REPLICATED_KINDS: readonly string[] = ["table", "partitioned table"];

/** The minimum size of retained WAL for which an inactive slot is reported. */
const MAX_RETAINED_BYTES = 2 ** 30;
/** The number of slots needed: one for the gateway, one for its successor during a restart. */
const SLOTS_NEEDED = 2;

/** A minor release, and the day on which it was published. */
type MinorRelease = { readonly minor: number; readonly date: string };

/** The newest minor release of each major that was known on 2026-11-22: it has all security fixes up to its date. */
const NEWEST_MINORS: ReadonlyMap<number, MinorRelease> = new Map([
  [14, { minor: 24, date: "2026-08-13" }],
  [15, { minor: 20, date: "2026-11-12" }],
  [16, { minor: 15, date: "2026-08-13" }],
  [17, { minor: 11, date: "2026-08-13" }],
  [18, { minor: 6, date: "2026-08-13" }],
]);
/** Majors that get no more fixes, with the end of their support. */
const ENDED_MAJORS: ReadonlyMap<number, string> = new Map([[14, "2026-11-12"]]);
/** Matches releases of Postgres itself: forks add a suffix to the number and have releases of their own. */
const POSTGRES_RELEASE = /^(?<major>\d+)\.(?<minor>\d+)(?: \(|$)/;

/** Checks the release, standbys, replication slots, schema change detection, and schemas that every role may create objects in. */
export function serverFindings({
  server,
  config,
  missingTriggerSql,
}: Pick<DoctorFacts, "server" | "config" | "missingTriggerSql">): DoctorFinding[] {
  return [
    ...releaseFindings(server.release, isEmbedded(config)),
    ...standbyFindings(server),
    ...(missingTriggerSql === null ? [] : [triggerFinding(missingTriggerSql)]),
    ...server.openSchemas.map(openSchemaFinding),
    ...server.slots.flatMap(slotFindings),
    ...spareSlotFindings(server.spareSlots),
    ...claimsHookFindings(server),
  ];
}

function releaseFindings(release: string, embedded: boolean): DoctorFinding[] {
  const groups = POSTGRES_RELEASE.exec(release)?.groups;
  const [major, minor] = [Number(groups?.major), Number(groups?.minor)];
  const findings: DoctorFinding[] = [];
  const endedOn = ENDED_MAJORS.get(major);
  if (endedOn) {
    const problem = `Postgres ${major} has had no security fixes since ${endedOn}.`;
    findings.push({ kind: "advice", problem, fix: "-- Upgrade to a newer major version with pg_upgrade." });
  }
  const newest = NEWEST_MINORS.get(major);
  if (newest && minor < newest.minor) {
    const name = `${major}.${newest.minor}`;
    const fix = embedded
      ? `-- Update this package when it contains ${name}, or set DATABASE_URL to your own Postgres.`
      : `-- Update to the newest minor release of Postgres ${major}, and restart it.`;
    const problem = `Postgres ${release} lacks the security fixes of ${name}, of ${newest.date}.`;
    findings.push({ kind: "advice", problem, fix });
  }
  return findings;
}

/** Checks what happens to writes now, and to Realtime at a failover. */
function standbyFindings({ isStandby, standbys, slots }: DoctorFacts["server"]): DoctorFinding[] {
  if (isStandby) {
    const problem = "OWNER_DATABASE_URL is that of a standby, which takes no writes.";
    return [{ kind: "danger", problem, fix: "Set it to the primary, or to all hosts: postgresql://user@a,b/database" }];
  }
  const keeper = slots.find(({ isKeeper }) => isKeeper);
  if (standbys === 0 || !keeper || keeper.isFailover) return [];
  const consequence = "after a failover Realtime clients are told that they may have missed changes";
  if (keeper.isFailover === null) {
    const problem = `Postgres before 17 does not copy the replication slot ${keeper.name} to standbys: unless Patroni does, ${consequence}.`;
    return [{ kind: "advice", problem, fix: "-- Upgrade to Postgres 17 or newer, or let Patroni copy the slot." }];
  }
  const problem = `The replication slot ${keeper.name} is not copied to standbys: ${consequence}.`;
  const fix = `select pg_catalog.pg_drop_replication_slot('${keeper.name}');  -- the service creates it again, to be copied`;
  return [{ kind: "advice", problem, fix }];
}

/** Checks the function of CLAIMS_HOOK, which runs at each sign-in. */
function claimsHookFindings({ claimsHook }: DoctorFacts["server"]): DoctorFinding[] {
  if (!claimsHook) return [];
  const { name, role, exists, isExecutable, isRoleUsable, callers } = claimsHook;
  if (!exists) {
    const problem = `Nobody can sign in: CLAIMS_HOOK names ${name}(jsonb), which does not exist or does not return jsonb.`;
    return [{ kind: "danger", problem, fix: "Unset CLAIMS_HOOK, or create the function." }];
  }
  const findings: DoctorFinding[] = [];
  if (!isRoleUsable) {
    const problem = `Nobody can sign in: the owner cannot become ${role}, which runs the function of CLAIMS_HOOK.`;
    findings.push({ kind: "danger", problem, fix: `grant ${role} to current_user;  -- as a superuser` });
  } else if (!isExecutable) {
    const problem = `Nobody can sign in: ${role} may not execute ${name}(jsonb), which CLAIMS_HOOK names.`;
    const schema = name.split(".")[0]!;
    const fix = `grant usage on schema ${schema} to ${role}; grant execute on function ${name}(jsonb) to ${role};`;
    findings.push({ kind: "danger", problem, fix });
  }
  if (callers.length > 0) {
    const problem = `Callers may execute ${name}(jsonb), which CLAIMS_HOOK names (${callers.join(", ")}): it may reveal other users' claims.`;
    findings.push({
      kind: "advice",
      problem,
      fix: `revoke execute on function ${name}(jsonb) from public, ${callers.map((each) => quotedName(each)).join(", ")};`,
    });
  }
  return findings;
}

function triggerFinding(sql: string): DoctorFinding {
  return {
    kind: "advice",
    problem: "Schema changes are detected by polling every few seconds: there is no event trigger that reports them.",
    fix: `${commandLine("migrate", "--watch-only")}, or as a superuser:\n\n${sql}`,
  };
}

/** Reports the default privilege on `public` before Postgres 15. */
function openSchemaFinding(schema: string): DoctorFinding {
  const name = quotedName(schema);
  return {
    kind: "danger",
    problem: `Every role may create tables and functions in ${name}, which is on the search path.`,
    fix: `revoke create on schema ${name} from public;`,
  };
}

function slotFindings({
  name,
  isActive,
  isLost,
  isPhysical,
  retainedBytes,
}: DoctorFacts["server"]["slots"][number]): DoctorFinding[] {
  if (isActive) return [];
  if (isPhysical) return [lostStandbyFinding(name)];
  if (!isLost && retainedBytes < MAX_RETAINED_BYTES) return [];
  const problem = isLost
    ? `The replication slot ${name} is lost: the WAL that it needs was removed.`
    : `The replication slot ${name} keeps ${(retainedBytes / 2 ** 30).toFixed(1)} GB of WAL and is inactive.`;
  const fix = `select pg_catalog.pg_drop_replication_slot('${name.replaceAll("'", "''")}');`;
  return [{ kind: isLost ? "advice" : "danger", problem, fix }];
}

/** Reports a standby that is away, or that runs but cannot follow. */
function lostStandbyFinding(slot: string): DoctorFinding {
  return {
    kind: "advice",
    problem: `No standby uses the replication slot ${slot}: the standby is stopped, or cannot follow the primary any more.`,
    fix: `-- Look at its log. If it needs WAL that was removed, copy it again: patronictl reinit <cluster> ${slot}, or pg_basebackup\n-- If it was removed: select pg_catalog.pg_drop_replication_slot('${slot.replaceAll("'", "''")}');`,
  };
}

function spareSlotFindings({ slots, senders }: DoctorFacts["server"]["spareSlots"]): DoctorFinding[] {
  const short = [
    { setting: "max_replication_slots", spare: slots },
    { setting: "max_wal_senders", spare: senders },
  ].filter(({ spare }) => spare < SLOTS_NEEDED);
  return short.map(({ setting, spare }) => ({
    kind: "advice",
    problem: `Row changes may become unavailable: ${setting} leaves ${spare} free, and each gateway needs one.`,
    fix: `alter system set ${setting} = 20;  -- and restart Postgres`,
  }));
}

/** Checks the connections between the service and Postgres. */
export function connectionFindings({ config, login, replication }: DoctorFacts): DoctorFinding[] {
  const findings: DoctorFinding[] = [];
  if (replication.isPooled) {
    findings.push({
      kind: "danger",
      problem:
        "The owner's direct connection goes through a connection pooler, which supports neither LISTEN nor replication nor session locks.",
      fix: "Set DIRECT_DATABASE_URL (if unset, OWNER_DATABASE_URL applies) to Postgres itself.",
    });
  }
  findings.push(...sessionFindings(login.sessions, config));
  if (login.isInTheOpen) {
    findings.push({
      kind: "danger",
      problem: "Network connections to Postgres are not encrypted.",
      fix: "?sslmode=verify-full&sslrootcert=… in DATABASE_URL and OWNER_DATABASE_URL",
    });
  }
  return findings;
}

/** Reports the missing capabilities of a router in front of Postgres. */
function sessionFindings(
  { isRouted, isExplicit, preparesStatements, settingMode }: ConnectionCapabilities,
  { transactionMode, preparedStatements }: DoctorFacts["config"],
): DoctorFinding[] {
  if (!isRouted) return [];
  const findings: DoctorFinding[] = [];
  if (isExplicit && settingMode === "function" && transactionMode === null) {
    findings.push({
      kind: "advice",
      problem:
        "DATABASE_URL is that of a router that runs the statements of one request in several sessions: requests are sent with BEGIN and COMMIT.",
      fix: "-- Nothing has to be changed. TRANSACTION_MODE=explicit starts faster, and PgBouncer needs neither.",
    });
  }
  if (!preparesStatements && preparedStatements === null) {
    findings.push({
      kind: "advice",
      problem:
        "DATABASE_URL is that of a router that does not keep prepared statements: each request is parsed and planned again.",
      fix: "max_prepared_statements = 250 in pgbouncer.ini, which requires PgBouncer 1.21",
    });
  }
  return findings;
}

/** Checks the replicas of READ_DATABASE_URLS. With several hosts in DATABASE_URL, which change roles, the primary may be among them. */
export function replicaFindings({
  replicas,
  server,
  config,
}: Pick<DoctorFacts, "replicas" | "server" | "config">): DoctorFinding[] {
  const hasKeeper = server.slots.some(({ isKeeper }) => isKeeper);
  const mayListPrimary =
    parseServers(config.databaseUrl ?? "").servers.length > 1 &&
    replicas.filter(({ status }) => status === "primary").length === 1;
  return replicas.flatMap((replica, index) => {
    const name = `Replica ${index + 1} of READ_DATABASE_URLS`;
    if (mayListPrimary && replica.status === "primary") return [];
    return [...describeReplica(replica, name), ...(hasKeeper ? slotCopyFindings(replica, name) : [])];
  });
}

/** A standby that becomes the primary has only those replication slots that it has copied before. */
function slotCopyFindings({ host, copiesSlots }: ReplicaFacts, name: string): DoctorFinding[] {
  if (copiesSlots !== false) return [];
  const problem = `${name} (${host}) does not copy replication slots: after a failover to it Realtime clients are told that they may have missed changes.`;
  const fix =
    "-- On it, set sync_replication_slots and hot_standby_feedback to on, and primary_slot_name to a slot of its own.";
  return [{ kind: "advice", problem, fix }];
}

/** Checks the hosts of connection strings that have several. */
export function hostFindings({ hosts, server }: Pick<DoctorFacts, "hosts" | "server">): DoctorFinding[] {
  const hasKeeper = server.slots.some(({ isKeeper }) => isKeeper);
  const bySetting = Map.groupBy(hosts, ({ setting }) => setting);
  return [...bySetting].flatMap(([setting, own]) => [
    ...primaryFindings(setting, own),
    ...own.flatMap((host) => {
      if (host.status === "primary") return [];
      if (host.status !== "away") return hasKeeper ? slotCopyFindings(host, `A host of ${setting}`) : [];
      const problem = `A host of ${setting} (${host.host}) is unreachable: the service cannot follow a failover to it.`;
      return [{ kind: "advice" as const, problem, fix: `-- Start it, or remove it from ${setting}.` }];
    }),
  ]);
}

function primaryFindings(setting: string, hosts: readonly HostFacts[]): DoctorFinding[] {
  const primaries = hosts.filter(({ status }) => status === "primary").map(({ host }) => host);
  if (primaries.length < 2) return [];
  return [
    {
      kind: "danger",
      problem: `${primaries.length} hosts of ${setting} take writes, and each gateway uses one of them: ${primaries.join(", ")}.`,
      fix: "-- Stop all but the newest primary, and make them its standbys.",
    },
  ];
}

function describeReplica({ host, status }: ReplicaFacts, name: string): DoctorFinding[] {
  const named = `${name} (${host})`;
  switch (status) {
    case "away":
      return [{ kind: "advice", problem: `${named} is unreachable and receives no reads.`, fix: "-- Start it." }];
    case "primary":
      return [{ kind: "danger", problem: `${named} is not a replica.`, fix: "Remove it from READ_DATABASE_URLS." }];
    case "without feedback":
      return [
        {
          kind: "advice",
          problem: `${named} cancels reads that conflict with vacuum.`,
          fix: "alter system set hot_standby_feedback = on; select pg_catalog.pg_reload_conf();  -- on the replica",
        },
      ];
    case "well":
      return [];
  }
}

/** Checks the prerequisites of subscriptions to row changes. */
export function replicationFindings({ catalog, replication }: DoctorFacts): DoctorFinding[] {
  const tables = exposedTables(catalog);
  const partitioned = tables.filter(({ kind }) => kind === "partitioned table");
  const unpublished = replication.isViaRoot === false ? partitioned : [];
  return [
    ...walFindings(replication),
    ...partitionFindings(unpublished),
    ...tables
      .filter((table) => !unpublished.includes(table))
      .flatMap((table) => publishedTableFindings(table, replication, catalog.server.version)),
  ];
}

function walFindings({ walLevel, mayReplicate, isBounded }: ReplicationFacts): DoctorFinding[] {
  if (walLevel !== "logical") {
    return [
      {
        kind: "advice",
        problem: `Row changes are unavailable: wal_level is ${walLevel}.`,
        fix: "alter system set wal_level = 'logical';  -- and restart Postgres",
      },
    ];
  }
  if (!mayReplicate) {
    return [
      {
        kind: "advice",
        problem: "Row changes are unavailable: the database owner lacks the REPLICATION attribute.",
        fix: "alter role … replication;  -- the login of OWNER_DATABASE_URL, as a superuser",
      },
    ];
  }
  if (isBounded) return [];
  return [
    {
      kind: "danger",
      problem: "max_slot_wal_keep_size is unlimited: an inactive replication slot can fill the disk.",
      fix: "alter system set max_slot_wal_keep_size = '4GB'; select pg_catalog.pg_reload_conf();",
    },
  ];
}

function partitionFindings(unpublished: readonly CatalogTable[]): DoctorFinding[] {
  if (unpublished.length === 0) return [];
  const names = unpublished.map(({ schema, name }) => quotedName(schema, name)).join(", ");
  return [
    {
      kind: "advice",
      problem: `Changes cannot be subscribed to: ${names}. The publication publishes partitions under their own names.`,
      fix: `alter publication ${REALTIME_PUBLICATION} set (publish_via_partition_root = true);`,
    },
  ];
}

function publishedTableFindings(
  table: CatalogTable,
  replication: ReplicationFacts,
  serverVersion: number,
): DoctorFinding[] {
  const findings: DoctorFinding[] = [];
  const isPublished = replication.published?.has(`${table.schema}.${table.name}`) ?? false;
  const name = quotedName(table.schema, table.name);
  const coverage = publishedPart(table, replication, serverVersion);
  const publishGenerated = `alter publication ${REALTIME_PUBLICATION} set (publish_generated_columns = stored);`;
  const showOldRows = {
    whole: `alter table ${name} replica identity full;`,
    "without generated columns": `${publishGenerated} alter table ${name} replica identity full;`,
    // Postgres would reject updates of the table's rows under `replica identity full`.
    "in part": null,
  }[coverage];
  if (!isPublished && replication.isByHand && REPLICATED_KINDS.includes(table.kind)) {
    const publish = `alter publication ${REALTIME_PUBLICATION} add table ${name};`;
    findings.push({
      kind: "advice",
      problem: `Changes cannot be subscribed to: ${name} is not published.`,
      fix: showOldRows ? `${showOldRows} ${publish}` : publish,
    });
  }
  if (!isPublished) return findings;
  if (table.replicaIdentity === "full" && coverage !== "whole") {
    const byKey =
      table.primaryKey.length > 0
        ? `alter table ${name} replica identity default;`
        : `alter publication ${REALTIME_PUBLICATION} drop table ${name};`;
    findings.push({
      kind: "danger",
      problem: `Postgres rejects UPDATE and DELETE of ${name}: its replica identity is full, but the publication does not have all columns.`,
      fix: coverage === "in part" ? byKey : publishGenerated,
    });
  }
  if (table.replicaIdentity === "full" || !showOldRows) return findings;
  findings.push({
    kind: "advice",
    problem: `Change events do not contain the old rows of ${name}.`,
    fix: showOldRows,
  });
  return findings;
}

/** Returns the part of the table's columns that the publication contains, or would contain if the table were added. */
function publishedPart(
  { schema, name, columns }: CatalogTable,
  { published, hasGenerated }: ReplicationFacts,
  version: number,
): "whole" | "without generated columns" | "in part" {
  const publishedColumns = published?.get(`${schema}.${name}`) ?? null;
  const isMissing = ({ name, generated }: CatalogColumn) => {
    // Postgres cannot publish generated columns before version 18.
    if (generated !== null && version < PUBLISHES_GENERATED_SINCE) return false;
    if (publishedColumns !== null) return !publishedColumns.includes(name);
    return generated !== null && !(generated.kind === "stored" && hasGenerated);
  };
  const missing = [...columns.values()].filter(isMissing);
  if (missing.length === 0) return "whole";
  const areStored = missing.every(({ generated }) => generated?.kind === "stored");
  return areStored && !hasGenerated ? "without generated columns" : "in part";
}
