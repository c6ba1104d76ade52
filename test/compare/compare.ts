import { parseArgs } from "node:util";
import { installPostgres } from "../../bench/archives/versions.ts";
import { findBinaries } from "../../cluster/embedded/create-cluster.ts";
import { REPOSITORY } from "../repository.ts";
import { COMPARED_AREAS, type ComparedArea } from "./areas.ts";
import { CHANNEL_SESSIONS } from "./channel-sessions.ts";
import { checkOut, defaultCommit, git } from "./checkout.ts";
import { compareResponses } from "./compare-responses.ts";
import type { ComparedService } from "./compared-databases.ts";
import { ComparedSide, type SideOptions } from "./compared-side.ts";
import { answersOtherwise, withoutUnpublished } from "./version-differences.ts";

const USAGE = `npm run compare -- [COMMIT] [--area TEXT]… [--all]
npm run compare -- --major 15
  Sends the same requests to two services with equal databases, and prints how their responses differ:
  - of COMMIT (default: where this branch left main, or HEAD~1),
  + of the files in this folder, committed or not.
  With --major both run the files in this folder, the second one on that version of Postgres.
  --area: only areas whose names contain the text. --all: every difference, not only the first ones of each area.
  Exit codes: 0 no differences, 1 differences or failure, 2 usage error.

Areas: channels ${COMPARED_AREAS.map(({ name }) => name).join(" ")}`;

/** The number of simultaneous services on each side: some wait while others use the processors. */
const AT_ONCE = 3;
const MOST_SHOWN = 5;

type Comparison = {
  readonly before: ComparedSide;
  readonly after: ComparedSide;
  /** The older one if the versions of Postgres differ, else infinite. */
  readonly major: number;
};

type AreaResult = { readonly area: string; readonly requests: number; readonly differences: readonly string[] };
/** Areas that one service serves. */
type AreaGroup = Pick<ComparedArea, "database" | "settings"> & {
  compare(before: ComparedService, after: ComparedService, major: number): AsyncIterable<AreaResult>;
};

let starting: Promise<readonly ComparedService[]> = Promise.resolve([]);
const options = readOptions();
if (options !== null) process.exitCode = await main(options);

async function main({ commit, major, areas, all }: NonNullable<typeof options>): Promise<number> {
  const start = performance.now();
  await using opened = new AsyncDisposableStack();
  const groups = groupAreas((area) => areas.length === 0 || areas.some((text) => area.includes(text)));
  const comparison = await openBoth({ commit, major }, opened);
  const results: AreaResult[] = [];
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
        for await (const result of compareGroup(group, comparison)) {
          results.push(result);
          printResult(result, all ? Infinity : MOST_SHOWN);
        }
      }
    }),
  );
  const differences = sum(results.map((result) => result.differences.length));
  const seconds = ((performance.now() - start) / 1000).toFixed(0);
  console.log(`${sum(results.map(({ requests }) => requests))} requests, ${differences} differences, ${seconds} s`);
  return differences === 0 ? 0 : 1;
}

function readOptions() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        area: { type: "string", multiple: true, default: [] },
        major: { type: "string" },
        all: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
    if (values.help) {
      console.log(USAGE);
      return null;
    }
    if (positionals.length > 1 || (positionals.length > 0 && values.major)) throw new Error("One commit, or --major.");
    const { area: areas, major = null, all } = values;
    const unknown = areas.find(
      (text) => !["channels", ...COMPARED_AREAS.map(({ name }) => name)].some((name) => name.includes(text)),
    );
    if (unknown !== undefined) throw new Error(`There is no area ${unknown}.`);
    if (major !== null && !/^\d+$/.test(major)) throw new Error("--major is a version of Postgres, such as 15.");
    return { commit: positionals[0] ?? null, major: major === null ? null : Number(major), areas, all };
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    process.exitCode = 2;
    return null;
  }
}

async function openBoth(
  { commit, major }: { readonly commit: string | null; readonly major: number | null },
  opened: AsyncDisposableStack,
): Promise<Comparison> {
  const binaries = await findBinaries();
  const other = major === null ? null : opened.use(await installPostgres(major));
  const compared = major === null ? await git("rev-parse", "--short", commit ?? (await defaultCommit())) : null;
  const root = compared === null ? REPOSITORY : opened.use(await checkOut(compared)).root;
  console.log(
    `- ${compared ?? `Postgres ${binaries.major}`}\n+ ${other ? `Postgres ${other.version}` : "this folder"}`,
  );
  const open = async (side: SideOptions) => opened.use(await ComparedSide.open(side));
  const [before, after] = await Promise.all([
    open({ root, binaries }),
    open({ root: REPOSITORY, binaries: other?.binaries ?? binaries }),
  ]);
  return { before, after, major: other ? Math.min(binaries.major, other.binaries.major) : Number.POSITIVE_INFINITY };
}

/** Returns groups of areas; those that take long come first. */
function groupAreas(isWanted: (area: string) => boolean): AreaGroup[] {
  const areas = COMPARED_AREAS.filter(({ name }) => isWanted(name));
  const groups = Map.groupBy(areas, ({ database, settings }) => JSON.stringify([database, settings]));
  const channels: AreaGroup = { database: "content", settings: {}, compare: compareChannels };
  return [
    ...(isWanted("channels") ? [channels] : []),
    ...[...groups.values()].map((group): AreaGroup => ({ ...group[0]!, compare: compareAreas(group) })),
  ];
}

async function* compareGroup(group: AreaGroup, { before, after, major }: Comparison): AsyncIterable<AreaResult> {
  const { database, settings, compare } = group;
  // The pairs start one after the other: a start takes a processor for a second.
  starting = starting.then(() => Promise.all([before, after].map((side) => side.openService(database, settings))));
  const sides = await starting;
  yield* compare(sides[0]!, sides[1]!, major);
  for (const service of sides) await service.close();
}

function compareAreas(areas: readonly ComparedArea[]): AreaGroup["compare"] {
  return async function* (before, after, major) {
    for (const { name, requests } of areas) {
      const sent = (await requests(before.url)).filter((request) => !answersOtherwise(major, request));
      yield { area: name, requests: sent.length, differences: await compareResponses(before, after, sent) };
    }
  };
}

async function* compareChannels(before: ComparedService, after: ComparedService, major: number) {
  const received = async ({ url }: ComparedService) => {
    const transcripts: (readonly string[])[] = [];
    for (const { run } of CHANNEL_SESSIONS) transcripts.push(await run(url));
    return major >= 18 ? transcripts : transcripts.map((messages) => messages.map(withoutUnpublished));
  };
  const [expected, messages] = await Promise.all([received(before), received(after)]);
  const differences = CHANNEL_SESSIONS.flatMap(({ name }, index) => {
    const [one, other] = [expected[index]!, messages[index]!];
    if (JSON.stringify(one) === JSON.stringify(other)) return [];
    const lines = [...one.map((message) => `- ${message}`), ...other.map((message) => `+ ${message}`)];
    return [`${name}\n${lines.join("\n")}`];
  });
  yield { area: "channels", requests: CHANNEL_SESSIONS.length, differences };
}

function printResult({ area, requests, differences }: AreaResult, most: number): void {
  console.log(
    `${area.padEnd(60)}${String(requests).padStart(6)} requests ${String(differences.length).padStart(6)} differences`,
  );
  for (const difference of differences.slice(0, most)) console.log(`  ${difference.replaceAll("\n", "\n  ")}`);
  if (differences.length > most) console.log(`  and ${differences.length - most} more (--all)`);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
