import { PUBLICATION } from "../../changes/publication.ts";
import { quotedName } from "../../quoted-name.ts";
import { exposedTables } from "../exposed-tables.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

const HAVE_LOG: readonly string[] = ["table", "partitioned table"];

/** What stands between a change of a row and its subscribers. */
export function streamFindings({ catalog, stream }: Facts): Finding[] {
  const findings: Finding[] = [];
  if (stream.walLevel !== "logical") {
    findings.push({
      kind: "advice",
      what: `Nobody can subscribe to row changes: wal_level is ${stream.walLevel}.`,
      fix: "alter system set wal_level = 'logical';  -- and restart Postgres",
    });
  } else if (!stream.mayReplicate) {
    findings.push({
      kind: "advice",
      what: "Nobody can subscribe to row changes: the database's owner may not replicate.",
      fix: "alter role … replication;  -- the login of OWNER_DATABASE_URL, as a superuser",
    });
  } else if (!stream.isBounded) {
    findings.push({
      kind: "danger",
      what: "A slot whose reader is away keeps the log until the disk is full.",
      fix: "alter system set max_slot_wal_keep_size = '4GB'; select pg_reload_conf();",
    });
  }
  const partitioned = exposedTables(catalog).filter(({ kind }) => kind === "partitioned table");
  if (stream.isViaRoot === false && partitioned.length > 0) {
    const names = partitioned.map(({ schema, name }) => quotedName(schema, name)).join(", ");
    findings.push({
      kind: "advice",
      what: `Nobody can subscribe to changes of ${names}: the publication has partitions under their own names, which are not served.`,
      fix: `alter publication ${PUBLICATION} set (publish_via_partition_root = true);`,
    });
  }
  for (const table of exposedTables(catalog)) {
    if (stream.isViaRoot === false && partitioned.includes(table)) continue;
    const isPublished = stream.published?.has(`${table.schema}.${table.name}`) ?? false;
    const name = quotedName(table.schema, table.name);
    if (!isPublished && stream.isByHand && HAVE_LOG.includes(table.kind)) {
      findings.push({
        kind: "advice",
        what: `Nobody can subscribe to changes of ${name}: it is not published, which nothing here does by itself.`,
        fix: `alter table ${name} replica identity full; alter publication ${PUBLICATION} add table ${name};`,
      });
    }
    if (!isPublished || table.replicaIdentity === "full") continue;
    findings.push({
      kind: "advice",
      what: `Subscribers are not shown the old rows of ${name}.`,
      fix: `alter table ${name} replica identity full;`,
    });
  }
  return findings;
}
