import { quotedName } from "../../quoted-name.ts";
import { exposedTables } from "../exposed-tables.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

/** What stands between a change of a row and its subscribers. */
export function streamFindings({ catalog, stream }: Facts): Finding[] {
  const findings: Finding[] = [];
  if (stream.walLevel !== "logical") {
    findings.push({
      kind: "advice",
      what: `Nobody can subscribe to row changes: wal_level is ${stream.walLevel}.`,
      fix: "alter system set wal_level = 'logical';  -- and restart Postgres",
    });
  } else if (stream.mostKept === "-1") {
    findings.push({
      kind: "danger",
      what: "A slot whose reader is away keeps the log until the disk is full.",
      fix: "alter system set max_slot_wal_keep_size = '4GB'; select pg_reload_conf();",
    });
  }
  for (const table of exposedTables(catalog)) {
    const isPublished = stream.published?.has(`${table.schema}.${table.name}`) ?? false;
    if (!isPublished || table.replicaIdentity === "full") continue;
    const name = quotedName(table.schema, table.name);
    findings.push({
      kind: "advice",
      what: `Subscribers are not shown the old rows of ${name}.`,
      fix: `alter table ${name} replica identity full;`,
    });
  }
  return findings;
}
