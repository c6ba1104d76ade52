import { median } from "../measuring/median.ts";
import type { Sample } from "./measure.ts";
import { OURS } from "./ours.ts";

/** The sample of each server; a server that did not take part has none. */
export type Round = ReadonlyMap<string, Sample>;

export type Outcome = {
  readonly work: string;
  readonly servers: Readonly<Record<string, Summary>>;
  /** The rate of this service divided by that of the other server. */
  readonly ratios: Readonly<Record<string, number>>;
  /** The other server's processor time per request, including Postgres, divided by ours; only for servers with both times. */
  readonly timeRatios: Readonly<Record<string, number>>;
};

type Summary = { readonly [Key in keyof Sample]: number | null };

export function outcomeOf(work: string, rounds: readonly Round[]): Outcome {
  const names = [...rounds[0]!.keys()];
  const summary = (name: string): Summary => {
    const middle = (key: keyof Sample) => {
      const values = rounds.map((round) => round.get(name)![key]).filter((value) => value !== null);
      return values.length > 0 ? median(values) : null;
    };
    return {
      rate: middle("rate"),
      p50: middle("p50"),
      p99: middle("p99"),
      serverTime: middle("serverTime"),
      postgresTime: middle("postgresTime"),
      clientTime: middle("clientTime"),
    };
  };
  const ratio = (name: string) => median(rounds.map((round) => round.get(OURS)!.rate / round.get(name)!.rate));
  const timeRatio = (name: string) =>
    median(rounds.map((round) => timeOf(round.get(name)!)! / timeOf(round.get(OURS)!)!));
  const others = names.filter((name) => name !== OURS);
  const timed = others.filter((name) => rounds.every((round) => timeOf(round.get(name)!) && timeOf(round.get(OURS)!)));
  return {
    work,
    servers: Object.fromEntries(names.map((name) => [name, summary(name)])),
    ratios: Object.fromEntries(others.map((name) => [name, ratio(name)])),
    timeRatios: Object.fromEntries(timed.map((name) => [name, timeRatio(name)])),
  };
}

function timeOf({ serverTime, postgresTime }: Sample): number | null {
  return serverTime === null || postgresTime === null ? null : serverTime + postgresTime;
}

export function describeOutcome({ work, servers, ratios, timeRatios }: Outcome, unit: string): string {
  const heading = ["", "rate", "p50/ms", "p99/ms", "ours is", "by time", "server/µs", "postgres/µs"];
  const lines = Object.entries(servers).map(([name, summary]) => [
    name,
    `${Math.round(summary.rate!)}/s`,
    ...[summary.p50, summary.p99, ratios[name], timeRatios[name]].map((figure) => figure?.toFixed(2) ?? ""),
    ...[summary.serverTime, summary.postgresTime].map((time) => time?.toFixed(1) ?? ""),
  ]);
  const table = [heading, ...lines].map((cells) => {
    const [name, ...others] = cells;
    return `    ${name!.padEnd(24)}${others.map((cell) => cell.padStart(12)).join("")}`.trimEnd();
  });
  return [`  ${work} (processor time per ${unit})`, ...table, ""].join("\n");
}
