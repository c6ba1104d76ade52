import type { Column } from "../../catalog/columns.ts";
import type { Table } from "../../catalog/tables.ts";
import { PUBLICATION } from "../../changes/publication.ts";
import { quotedName } from "../../quoted-name.ts";
import { exposedTables } from "../exposed-tables.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

/** `server_version_num` of the first release that publishes generated columns. */
const GENERATED_SINCE = 180_000;

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
    const coverage = coverageOf(table, stream, catalog.server.version);
    const publishGenerated = `alter publication ${PUBLICATION} set (publish_generated_columns = stored);`;
    const showOldRows = {
      whole: `alter table ${name} replica identity full;`,
      "without generated columns": `${publishGenerated} alter table ${name} replica identity full;`,
      // Postgres would refuse to change its rows.
      "in part": null,
    }[coverage];
    if (!isPublished && stream.isByHand && HAVE_LOG.includes(table.kind)) {
      const publish = `alter publication ${PUBLICATION} add table ${name};`;
      findings.push({
        kind: "advice",
        what: `Nobody can subscribe to changes of ${name}: it is not published, which nothing here does by itself.`,
        fix: showOldRows ? `${showOldRows} ${publish}` : publish,
      });
    }
    if (!isPublished) continue;
    if (table.replicaIdentity === "full" && coverage !== "whole") {
      const byKey =
        table.primaryKey.length > 0
          ? `alter table ${name} replica identity default;`
          : `alter publication ${PUBLICATION} drop table ${name};`;
      findings.push({
        kind: "danger",
        what: `Postgres refuses UPDATE and DELETE of ${name}: its replica identity is full, and the publication has not all of its columns.`,
        fix: coverage === "in part" ? byKey : publishGenerated,
      });
    }
    if (table.replicaIdentity === "full" || !showOldRows) continue;
    findings.push({ kind: "advice", what: `Subscribers are not shown the old rows of ${name}.`, fix: showOldRows });
  }
  return findings;
}

/** What the publication has of a table's columns, or would have if the table were added. */
function coverageOf(
  { schema, name, columns }: Table,
  { published, hasGenerated }: Facts["stream"],
  version: number,
): "whole" | "without generated columns" | "in part" {
  const told = published?.get(`${schema}.${name}`) ?? null;
  const isMissing = ({ name, generated }: Column) => {
    // Until Postgres 18 no publication has generated columns, and none is missed.
    if (generated !== null && version < GENERATED_SINCE) return false;
    if (told !== null) return !told.includes(name);
    return generated !== null && !(generated.kind === "stored" && hasGenerated);
  };
  const missing = [...columns.values()].filter(isMissing);
  if (missing.length === 0) return "whole";
  const areStored = missing.every(({ generated }) => generated?.kind === "stored");
  return areStored && !hasGenerated ? "without generated columns" : "in part";
}
