import type { Logger } from "../log.ts";
import { joined, type Observe } from "./observe.ts";

type Options = { readonly log: Pick<Logger, "warn">; readonly milliseconds: number };

/** Enough to know it by. */
const MOST_CHARACTERS = 2_000;

/** A line for each statement that took so long, with what leads to its request and to its session; never with its values. */
export function logSlowStatements({ log, milliseconds: least }: Options): Observe {
  return ({ role, settings }, texts) => {
    const askedAt = performance.now();
    return ({ error, milliseconds: ofPostgres, rows, bytes, pid }) => {
      const took = performance.now() - askedAt;
      if (took < least) return;
      const settingOf = (name: string) => settings.findLast(([each]) => each === name)?.[1];
      const code = (error as { readonly code?: unknown } | null)?.code;
      log.warn(
        {
          request: settingOf("request.id"),
          interface: settingOf("request.interface"),
          role,
          pid,
          milliseconds: rounded(took),
          waited: rounded(Math.max(0, took - ofPostgres)),
          inPostgres: rounded(ofPostgres),
          rows,
          bytes,
          ...(error !== null && { code: code ?? "unknown" }),
          statement: joined(texts).slice(0, MOST_CHARACTERS),
        },
        "a statement was slow",
      );
    };
  };
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}
