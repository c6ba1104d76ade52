import { noPage, noTotalOrder } from "../../statement/plan/page-refusals.ts";
import type { Plan } from "../../statement/plan/plan.ts";
import type { Answer } from "../../statement/query/answer.ts";
import { isCursor, toCursor } from "../cursor.ts";
import type { Parameter } from "../parse/query-string.ts";
import { PREFIX } from "../prefix.ts";
import { contentRange } from "./content-range.ts";

type Told = Pick<Answer<unknown>, "place" | "total">;

/** Where the next page is and where the first one is. The numbers of rows are known on the first page alone. */
export function pageHeaders(parameters: readonly Parameter[], plan: Plan, { place, total }: Told) {
  if (plan.kind === "write" || plan.page === null || place === undefined) return {};
  const { order, isFirst } = plan.page;
  const linkTo = (relation: string, cursor: string) =>
    `<${addressOf(plan)}?${withCursor(parameters, cursor)}>; rel="${relation}"`;
  const next = place === null ? [] : [linkTo("next", nextCursor(order, place))];
  const links = isFirst ? next : [...next, linkTo("first", "")];
  return {
    ...(links.length > 0 && { Link: links.join(", ") }),
    ...(!isFirst && { "Content-Range": contentRange(1, 0, total) }),
  };
}

/** Beyond this a server might not read the request that it is part of. */
const LONGEST = 4_096;

function nextCursor(order: string, values: readonly (string | null)[]): string {
  if (values.length === 0) throw noTotalOrder("The last row of the page and the next one are in the same place.");
  const cursor = toCursor({ order, values });
  if (cursor.length > LONGEST) throw noPage("What the rows are ordered by is too long to be part of an address.");
  return cursor;
}

function addressOf(plan: Exclude<Plan, { kind: "write" }>): string {
  return plan.kind === "call"
    ? `${PREFIX}/rpc/${encodeURIComponent(plan.routine.name)}`
    : `${PREFIX}/${encodeURIComponent(plan.table.name)}`;
}

function withCursor(parameters: readonly Parameter[], cursor: string): string {
  const others = parameters.filter(([name, value]) => name !== "cursor" || !isCursor(value));
  return [...others, ["cursor", cursor] as const]
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join("&");
}
