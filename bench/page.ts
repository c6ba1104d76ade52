import { arch, cpus, loadavg, release, totalmem, type } from "node:os";

export type BenchRecord = { readonly name: string; readonly result: object; readonly lines: readonly string[] };

type Run = { readonly command: string; readonly at: Date; readonly loadBefore: number; readonly stolen: string };

/** `docs/benchmarks.md`: how it was measured, then the output of each benchmark. */
export function benchmarksPage(records: readonly BenchRecord[], { command, at, loadBefore, stolen }: Run): string {
  const day = at.toISOString().slice(0, 10);
  const [processor] = cpus();
  return `# Benchmarks

How fast the service is beside pgbench, PostgREST, @supabase/lite, Express, Fastify, Bun, Go, Apollo Server and PostGraphile. One run of this command wrote it on ${day}:

\`\`\`sh
${command}
\`\`\`

- Machine: ${cpus().length} x ${processor!.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()} (${arch()}), Node ${process.versions.node}.
- Load average before: ${loadBefore.toFixed(1)}; after: ${loadavg()[0]!.toFixed(1)}. Other virtual machines took ${stolen} of the processors' time.
- Client, service and Postgres share the processors, so all rates are lower than on separate machines. Each ratio is the median of the rounds; differences below 5 % are noise.

![Requests per second of this service and of others](pictures/benchmarks.svg)

*Ours is* the rate of this service divided by that of the peer, with equal responses, the same Postgres and the same number of connections; *by time*, the processor time there, server and Postgres together, divided by that of this service.

${records.map(section).join("\n\n")}
`;
}

function section({ name, lines }: BenchRecord): string {
  return `## ${name}\n\n\`\`\`text\n${lines.join("\n").trim()}\n\`\`\``;
}
