import { arch, cpus, loadavg, release, totalmem, type } from "node:os";
import type { Outcome } from "./contest/report.ts";

export type Told = { readonly name: string; readonly result: object; readonly told: readonly string[] };

type Run = { readonly command: string; readonly at: Date; readonly loadBefore: number };

/** What was measured, for readers: ratios first, then all that was told. */
export function benchmarksPage(records: readonly Told[], { command, at, loadBefore }: Run): string {
  const day = at.toISOString().slice(0, 10);
  const [processor] = cpus();
  return `# Benchmarks

One run of \`${command}\`, on ${day}, written by the program that measured.

- Machine: ${cpus().length} x ${processor!.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()} (${arch()}), Node ${process.versions.node}.
- Load average before: ${loadBefore.toFixed(1)}; after: ${loadavg()[0]!.toFixed(1)}. What the load of a virtual machine's neighbours was, nobody here knows.
- Client, service and Postgres share the processors, so rates are lower than those of a server that has them for itself, for all contestants
  alike. Everybody runs by turns and each ratio is the median of those within a round; differences of a twentieth mean nothing.

## Ratios

How many times as fast as the other one ours is, with the same answers, on the same Postgres, at the same number of connections.

| bench | work | other one | times |
| --- | --- | --- | --- |
${records.flatMap(ratioRows).join("\n")}

${records.map(section).join("\n\n")}
`;
}

function ratioRows({ name, result }: Told): string[] {
  const outcomes = "outcomes" in result ? (result.outcomes as readonly Outcome[]) : [];
  return outcomes.flatMap(({ work, ratios }) =>
    Object.entries(ratios ?? {}).map(([other, ratio]) => `| ${name} | ${work} | ${other} | ${ratio.toFixed(2)} |`),
  );
}

function section({ name, told }: Told): string {
  return `## ${name}\n\n\`\`\`text\n${told.join("\n").trim()}\n\`\`\``;
}
