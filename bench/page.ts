import { arch, cpus, loadavg, release, totalmem, type } from "node:os";
import type { Outcome } from "./comparison/report.ts";

export type BenchRecord = { readonly name: string; readonly result: object; readonly lines: readonly string[] };

type Run = { readonly command: string; readonly at: Date; readonly loadBefore: number; readonly stolen: string };

/** `docs/benchmarks.md`: the ratios, then the output of each benchmark. */
export function benchmarksPage(records: readonly BenchRecord[], { command, at, loadBefore, stolen }: Run): string {
  const day = at.toISOString().slice(0, 10);
  const [processor] = cpus();
  return `# Benchmarks

After reading this page you know how fast the service is compared with pgbench, PostgREST, @supabase/lite, Express, Fastify, Bun, Go, Apollo Server and PostGraphile, and how that was measured. One run of this command wrote it on ${day}:

\`\`\`sh
${command}
\`\`\`

- Machine: ${cpus().length} x ${processor!.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()} (${arch()}), Node ${process.versions.node}.
- Load average before: ${loadBefore.toFixed(1)}; after: ${loadavg()[0]!.toFixed(1)}. Other virtual machines took ${stolen} of the processors' time.
- Client, service and Postgres share the processors, so all rates are lower than on separate machines. All peers run in turn, and each ratio is the median of the rounds. Differences below 5 % are noise.

![Requests per second of this service and of others](pictures/benchmarks.svg)

## Ratios

The rate of this service divided by that of the peer, with equal responses, the same Postgres and the same number of connections. By time: the processor time of a request there, server and Postgres together, divided by that of this service.

| benchmark | request | peer | ratio | by time |
| --- | --- | --- | --- | --- |
${records.flatMap(ratioRows).join("\n")}

${records.map(section).join("\n\n")}
`;
}

function ratioRows({ name, result }: BenchRecord): string[] {
  const outcomes = "outcomes" in result ? (result.outcomes as readonly Outcome[]) : [];
  return outcomes.flatMap(({ work, ratios, timeRatios }) =>
    Object.entries(ratios ?? {}).map(
      ([other, ratio]) =>
        `| ${name} | ${work} | ${other} | ${ratio.toFixed(2)} | ${timeRatios[other]?.toFixed(2) ?? ""} |`,
    ),
  );
}

function section({ name, lines }: BenchRecord): string {
  return `## ${name}\n\n\`\`\`text\n${lines.join("\n").trim()}\n\`\`\``;
}
