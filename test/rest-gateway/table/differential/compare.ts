import type { Answer } from "./answer.ts";
import type { Case } from "./case.ts";
import { type Difference, INTENDED, type IntendedDifference } from "./intended-differences.ts";

/** The answer that ours must give, and the intended differences that make it differ from the answer of PostgREST. */
export type Expectation = { readonly answer: Answer; readonly differences: readonly IntendedDifference[] };

export function expectationOf(request: Case, theirs: Answer, ours: Answer): Expectation {
  let answer = theirs;
  const differences: IntendedDifference[] = [];
  for (const [name, { today }] of Object.entries(INTENDED) as [IntendedDifference, Difference][]) {
    const changed = today?.(answer, ours, request) ?? null;
    if (changed === null || JSON.stringify(changed) === JSON.stringify(answer)) continue;
    answer = changed;
    differences.push(name);
  }
  return { answer, differences };
}

/** The part of an answer that both programs have to agree on. */
export function comparedPart({ status, headers, body, columns }: Answer, { compared, path }: Case): object {
  if (compared === "status and code") return { status, code: codeOf(body) };
  if (compared === "all but the body") return { status, headers };
  if (path.includes("(")) return { status, headers, body };
  return { status, headers, columns, body };
}

/** "ok", the code of the error, or the status where there is no body that could tell it. */
export function outcomeOf({ status, body }: Answer): string {
  return status < 300 ? "ok" : (codeOf(body) ?? String(status));
}

function codeOf(body: unknown): string | null {
  const isError = typeof body === "object" && body !== null && "code" in body && "hint" in body;
  return isError ? String(body.code) : null;
}
