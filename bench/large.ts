// Benchmarks a table of ten million rows, all of one caller: the cost of pages, of counts and of an export of all rows.

import { startOurs } from "./comparison/ours.ts";
import { LARGE_READS, measureRead } from "./large/large-reads.ts";
import type { Bench } from "./measuring/kind.ts";
import { CALLER, SCHEMA } from "./measuring/schema.ts";
import { startScratch } from "./measuring/scratch.ts";
import { describeExport, type Export, exportAll } from "./rest/export.ts";

const BYTES_OF_ROW = 500;
/** The maximum growth of the service during an export of any size. */
const MOST_GROWN_MEBIBYTES = 100;

const entriesOf = (rows: number) => `
  create table entries (
    id bigint not null,
    owner_id uuid not null default auth.uid(),
    kind text not null,
    body text not null,
    made_at timestamptz not null
  );
  insert into entries
    select n, '${CALLER}', 'kind ' || n % 100, repeat(md5(n::text), 11), timestamptz '2026-01-01' + n * interval '1 s'
    from generate_series(1, ${rows}) n;
  alter table entries add primary key (id);
  create index on entries (owner_id, id);
  create index on entries (kind, id);
  alter table entries enable row level security;
  create policy own on entries using (owner_id = (select auth.uid()));
  grant select, insert on entries to authenticated`;

export const bench: Bench = async ({ megabytes, rounds, print }) => {
  const rows = Math.ceil((megabytes * 1e6) / BYTES_OF_ROW);
  print(`large: ${rows.toLocaleString("en")} rows of a caller, row-level security on`);
  await using scratch = await startScratch(SCHEMA + entriesOf(rows));
  const server = await startOurs(scratch, scratch.url("authenticator"));
  try {
    const milliseconds: Record<string, number> = {};
    for (const read of LARGE_READS) {
      const measured = await measureRead(server.base, read, { rows, rounds });
      milliseconds[read.name] = measured;
      print(`  ${read.name.padEnd(44)} ${measured.toFixed(1).padStart(9)} ms`);
    }
    const exported = await exportAll(server, "entries");
    print(describeExport("all rows", exported));
    return { rows, milliseconds, exported, isMissed: !isFlat(exported) };
  } finally {
    await server.stop();
  }
};

function isFlat({ grownMebibytes }: Export): boolean {
  return grownMebibytes === null || grownMebibytes <= MOST_GROWN_MEBIBYTES;
}
