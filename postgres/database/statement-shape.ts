import { RecentMap } from "#runtime";
import type { ShareHolder } from "./fair-sharing.ts";

const SQL_NAME = '(?:"(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)';
const NAMED_RELATION = new RegExp(`\\b(?:from|join|into|update)\\s+(?:only\\s+)?(${SQL_NAME})\\.(${SQL_NAME})`, "gi");
const SYSTEM_SCHEMA = '"pg_catalog"';
/** Further relations are ignored. */
const MAX_RELATIONS = 16;

/** A statement that takes this many milliseconds is long. */
export const LONG_MS = 100;
const SLOW_AVERAGE_MS = 3;
const SLOW_RUN_MS = 20;
const BRIEF_AVERAGE_MS = 1;
const RUNS_TO_TRUST = 3;
/** Weight of the newest run in the moving average. */
const NEWEST_RUN_WEIGHT = 1 / 8;
/** Weight of a caller's newest run in the share of its runs that are long. */
const NEWEST_LENGTH_WEIGHT = 1 / 4;
/** For how long a statement that failed is expected to fail again. */
const FAILURE_MEMORY_MS = 10_000;
const MAX_TEXT_BYTES = 16 * 1024 * 1024;
const TEXT_OVERHEAD_BYTES = 1_000;
const MAX_CALLERS = 100;

/** A statement's text for one role: the key of prepared statements and of learned durations. */
export class StatementShape {
  readonly text: string;
  #average = 0;
  #fastRuns = 0;
  #relations: readonly string[] | null = null;
  #failedAt = 0;
  /** Statements that turned out to be long queue apart from those of unknown duration. */
  readonly longKind = {};
  /** By caller, which share of its last runs was long: with other parameter values it may be fast. */
  #longShares: Map<string, number> | null = null;

  constructor(text: string) {
    // The protocol ends strings with a zero byte, so the server would read the rest as another field.
    if (text.includes("\0")) throw new TypeError("A statement's text must not contain a zero byte");
    this.text = text;
  }

  /** False if the shape is new, was slow recently or is slow on average. */
  get isFast(): boolean {
    return this.#fastRuns >= RUNS_TO_TRUST && this.#average < SLOW_AVERAGE_MS;
  }

  /** Whether it failed within the last seconds in a transaction that had to be rolled back. */
  get mayFail(): boolean {
    return this.#failedAt > 0 && performance.now() - this.#failedAt < FAILURE_MEMORY_MS;
  }

  /** The expected duration in milliseconds. */
  get expected(): number {
    return this.#average;
  }

  /** Whether most of the caller's last runs were long: then it is limited to a share of the pool. Unknown statements are not long. */
  isLongFor(by: Pick<ShareHolder, "caller">): boolean {
    return (this.#longShares?.get(by.caller) ?? 0) > 1 / 2;
  }

  get relations(): readonly string[] {
    this.#relations ??= findNamedRelations(this.text);
    return this.#relations;
  }

  /** Whether the statements together are as fast as a single fast one. */
  static areFastTogether(shapes: readonly StatementShape[]): boolean {
    return (
      shapes.every((shape) => shape.isFast) && shapes.reduce((sum, shape) => sum + shape.#average, 0) < SLOW_AVERAGE_MS
    );
  }

  /** Whether it is so short that batching several does not delay others. */
  get isBrief(): boolean {
    return this.isFast && this.#average < BRIEF_AVERAGE_MS;
  }

  failed(): void {
    this.#failedAt = performance.now();
  }

  ran(milliseconds: number, by: Pick<ShareHolder, "caller">): void {
    this.#recordLength(milliseconds >= LONG_MS, by.caller);
    this.#average += (milliseconds - this.#average) * NEWEST_RUN_WEIGHT;
    if (milliseconds > SLOW_RUN_MS) this.#fastRuns = 0;
    else if (milliseconds < SLOW_AVERAGE_MS && this.#fastRuns < RUNS_TO_TRUST) this.#fastRuns++;
  }

  #recordLength(isLong: boolean, caller: string): void {
    const share = this.#longShares?.get(caller);
    if (!isLong && share === undefined) return;
    if (!this.#longShares || this.#longShares.size >= MAX_CALLERS) this.#longShares = new Map();
    // Callers without long runs are not in the map.
    const isUsuallyShort = this.#average > 0 && this.#average < LONG_MS;
    const before = share ?? (isUsuallyShort ? 0 : 1);
    const after = before + (Number(isLong) - before) * NEWEST_LENGTH_WEIGHT;
    if (after < NEWEST_LENGTH_WEIGHT / 4) this.#longShares.delete(caller);
    else this.#longShares.set(caller, after);
  }
}

/** The learned duration of a statement, and the relations it may wait for. */
export type StatementPacing = Pick<
  StatementShape,
  "expected" | "isBrief" | "isLongFor" | "longKind" | "relations" | "ran"
>;

/** The pace of several statements in one transaction. */
export function combinedPacing(shapes: readonly StatementShape[]): StatementPacing {
  return {
    expected: shapes.reduce((sum, { expected }) => sum + expected, 0),
    isBrief: false,
    longKind: {},
    isLongFor: (by) => shapes.some((shape) => shape.isLongFor(by)),
    relations: [...new Set(shapes.flatMap(({ relations }) => relations))],
    ran(milliseconds, by) {
      for (const shape of shapes) shape.ran(milliseconds / shapes.length, by);
    },
  };
}

/**
 * The recently used shapes, for all connections. Postgres checks USAGE on schemas at Parse only, and plans policies for
 * one role, so each role has its own shape of a text.
 */
export class StatementShapes {
  /** By text, then by role. */
  readonly #known: RecentMap<string, Map<string, StatementShape>>;

  constructor(maxBytes = MAX_TEXT_BYTES) {
    this.#known = new RecentMap(maxBytes, (text) => TEXT_OVERHEAD_BYTES + 2 * text.length);
  }

  shapeFor(role: string, text: string): StatementShape {
    const byRole = this.#known.get(text);
    const existing = byRole?.get(role);
    if (existing) return existing;
    const shape = new StatementShape(text);
    if (byRole) byRole.set(role, shape);
    else this.#known.set(text, new Map([[role, shape]]));
    return shape;
  }
}

/**
 * The tables, views and functions that a statement names with their schema, as quoted names, without system relations.
 * Relations inside views and policies are not included.
 */
export function findNamedRelations(text: string): readonly string[] {
  const names = new Set<string>();
  for (const [, schema, name] of text.matchAll(NAMED_RELATION)) {
    if (toQuotedName(schema!) !== SYSTEM_SCHEMA) names.add(`${toQuotedName(schema!)}.${toQuotedName(name!)}`);
    if (names.size === MAX_RELATIONS) break;
  }
  return [...names];
}

function toQuotedName(name: string): string {
  return name.startsWith('"') ? name : `"${name.toLowerCase()}"`;
}
