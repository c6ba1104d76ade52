import type { PgbenchOptions } from "../measuring/pgbench.ts";
import type { Scratch } from "../measuring/scratch.ts";
import type { LoadGenerator } from "./load.ts";
import { startOurs } from "./ours.ts";
import { openTap, type Sent } from "./tap.ts";
import { TOKENS } from "./tokens.ts";
import { DRAWN, type Drawn, requestOf, type Work } from "./work.ts";

export type Script = Pick<PgbenchOptions, "script" | "variables">;

/**
 * Returns the scripts for pgbench: the statements and settings that the service sends for a request of each work. They are
 * recorded on their way to Postgres, so that they are the same as those of the service.
 */
export async function recordScripts(
  works: readonly Work[],
  { scratch, generator }: { readonly scratch: Scratch; readonly generator: LoadGenerator },
  start: typeof startOurs = startOurs,
): Promise<ReadonlyMap<Work, Script>> {
  await using opened = new AsyncDisposableStack();
  const tap = opened.use(await openTap(scratch.url("authenticator")));
  const ours = opened.adopt(await start(scratch, tap.url), (server) => server.stop());
  const scripts = new Map<Work, Script>();
  for (const work of works) {
    const { port, request, values } = requestOf(work, ours);
    const [before, ...rest] = request;
    const { step, count } = work.drawn ?? DRAWN;
    const drawnOnce = String(step * Math.floor(count / 2));
    tap.take();
    await generator.run({
      port,
      request: [before + (values ? drawnOnce : ""), ...rest],
      values: null,
      tokens: TOKENS.cached,
      connections: 1,
      seconds: 0,
    });
    scripts.set(work, toScript(tap.take(), drawnOnce, { step, count }));
  }
  return scripts;
}

/** Makes a script. Values become variables, which pgbench sends as parameters, like the service. */
function toScript(sent: readonly Sent[], drawnOnce: string, { step, count }: Drawn): Script {
  const variables: Record<string, string> = {};
  const statements = sent.map(({ text, values }, index) =>
    text.replace(/\$(\d+)/g, (_, number) => {
      const value = values[Number(number) - 1]!;
      if (value === drawnOnce) return ":drawn";
      const name = `v${index}_${number}`;
      variables[name] = value;
      return `:${name}`;
    }),
  );
  const lines = statements.map((text) => `${text};`);
  const draw = `\\set drawn random(0, ${count - 1}) * ${step}`;
  return { script: [draw, "\\startpipeline", ...lines, "\\endpipeline", ""].join("\n"), variables };
}
