import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";

export type BenchOptions = {
  readonly rounds: number;
  /** How long one variant runs in a round. */
  readonly seconds: number;
  readonly tell: (line: string) => void;
};

/** Tells what it measured and returns it as plain data. */
export type Bench = (options: BenchOptions) => Promise<object>;

const BENCHES: Readonly<Record<string, () => Promise<{ readonly bench: Bench }>>> = {
  engine: () => import("./engine.ts"),
  rest: () => import("./rest.ts"),
  users: () => import("./users.ts"),
  graphql: () => import("./graphql.ts"),
  realtime: () => import("./realtime.ts"),
};

const USAGE = `npm run bench -- NAME… [--rounds 5] [--seconds 1] [--json FILE]
  names: ${Object.keys(BENCHES).join(", ")}`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "1" },
    json: { type: "string" },
  },
});

const unknown = positionals.filter((name) => !(name in BENCHES));
if (positionals.length === 0 || unknown.length > 0) {
  if (unknown.length > 0) console.error(`No such benchmark: ${unknown.join(", ")}`);
  console.error(USAGE);
  process.exit(2);
}

const results: Record<string, object> = {};
for (const name of positionals) {
  const { bench } = await BENCHES[name]!();
  results[name] = await bench({ rounds: Number(values.rounds), seconds: Number(values.seconds), tell: console.log });
}
if (values.json) await writeFile(values.json, `${JSON.stringify(results, null, 2)}\n`);
