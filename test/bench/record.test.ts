import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { judge } from "../../bench/comparison/targets.ts";
import { targetsOn } from "../../bench/rest.ts";
import { TARGETS as USERS_TARGETS } from "../../bench/users.ts";
import { repositoryFiles } from "../repository.ts";

const RECORD = "docs/benchmarks.md";
const record = readFileSync(RECORD, "utf8");
const cores = Number(/^- Machine: (\d+) x /m.exec(record)![1]);

type Ratio = {
  readonly bench: string;
  readonly work: string;
  readonly peer: string;
  readonly ratio: number;
  readonly time: string;
};
const ratios: readonly Ratio[] = record.split(/^## /m).flatMap((section) => {
  const [bench] = section.split("\n");
  return section.split(/^ {2}(?=\S.* \(processor time per )/m).flatMap((part) => {
    const [work] = part.split(" (processor time");
    const rows = part.matchAll(/^ {4}(?<peer>.{24}) *\d+\/s(?<columns>.*)$/gm);
    return [...rows].flatMap(({ groups }) => {
      const [, , ratio, time] = groups!.columns!.match(/.{1,12}/g)!.map((column) => column.trim());
      const peer = groups!.peer!.trim();
      return ratio ? [{ bench: bench!, work: work!, peer, ratio: Number(ratio), time: time ?? "" }] : [];
    });
  });
});

/** Returns the outcomes of the benchmark, with ratios only. */
function outcomesOf(bench: string) {
  const own = ratios.filter((ratio) => ratio.bench === bench);
  return [...new Set(own.map(({ work }) => work))].map((work) => ({
    work,
    ratios: Object.fromEntries(own.filter((ratio) => ratio.work === work).map(({ peer, ratio }) => [peer, ratio])),
    timeRatios: Object.fromEntries(
      own.filter((ratio) => ratio.work === work && ratio.time !== "").map(({ peer, time }) => [peer, Number(time)]),
    ),
    servers: {},
  }));
}

/** A sentence that compares, such as "4.7 times PostgREST" or "0.6 of pgbench". */
const COMPARISON =
  /(\d+(?:\.\d+)?) (?:times|of) (?:the rate of )?`?(pgbench|PostgREST|@supabase\/lite|Express|Fastify|Bun|Go|Apollo|bare PostGraphile|plain PostGraphile|Express \+ pg)\b/g;

describe("the recorded benchmarks", () => {
  test.each([
    { bench: "rest", targets: targetsOn(cores) },
    { bench: "users", targets: USERS_TARGETS },
  ])("judge $bench by the present targets of the machine's cores", ({ bench, targets }) => {
    const start = record.indexOf(`\n## ${bench}\n`);
    const [, section] = record.slice(start + 1).split(/^## .*$/m);
    const verdicts = judge(outcomesOf(bench), targets);
    expect(verdicts.length).toBeGreaterThan(2);
    for (const verdict of verdicts) expect(section).toContain(verdict);
    expect(section!.match(/ (?:met {3}|MISSED) [^:]*: [\d.]+ times /g)).toHaveLength(verdicts.length);
  });

  test("have the figures of each sentence that compares, in all pages", () => {
    const pages = ["README.md", ...repositoryFiles("docs/*.md")].filter((page) => page !== RECORD);
    const stale = pages.flatMap((page) =>
      [...readFileSync(page, "utf8").matchAll(COMPARISON)]
        .filter(
          ([, figure, peer]) => !ratios.some((each) => each.peer.startsWith(peer!) && isRounded(each.ratio, figure!)),
        )
        .map(([sentence]) => `${page}: ${sentence}`),
    );
    expect(stale).toEqual([]);
  });

  test("are of all interfaces that are compared", () => {
    expect(new Set(ratios.map(({ bench }) => bench))).toEqual(new Set(["rest", "users", "graphql"]));
  });
});

function isRounded(ratio: number, figure: string): boolean {
  const digits = figure.split(".")[1]?.length ?? 0;
  return ratio.toFixed(digits) === figure;
}
