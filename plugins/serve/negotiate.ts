import { ApiError } from "../../engine/errors.ts";

export type MediaType = "application/json" | "application/graphql-response+json";

const PLAIN: MediaType = "application/json";
const OWN: MediaType = "application/graphql-response+json";

/** What each range stands for. Who takes anything gets what everybody can read. */
const MEANINGS: ReadonlyMap<string, MediaType> = new Map([
  [OWN, OWN],
  [PLAIN, PLAIN],
  ["application/*", PLAIN],
  ["*/*", PLAIN],
]);

/** GraphQL over HTTP, section 6.2. Of equals the one that was made for it is meant. */
export function negotiate(accept: string | undefined): MediaType {
  if (accept === undefined || accept === PLAIN || accept === "*/*" || accept.trim() === "") return PLAIN;
  const ranges = accept.split(",").map(readRange);
  const best = ranges.filter(({ type, quality }) => type && quality > 0).sort(byPreference)[0];
  if (best?.type) return best.type;
  throw new ApiError(406, "NOT_ACCEPTABLE", `Answers come as ${OWN} or ${PLAIN}.`);
}

type Range = { readonly type: MediaType | undefined; readonly quality: number };

/** `application/json;charset=utf-8;q=0.9` */
function readRange(text: string): Range {
  const [name = "", ...parameters] = text.toLowerCase().replaceAll(/\s/g, "").split(";");
  const weight = parameters.find((parameter) => parameter.startsWith("q="));
  const charset = parameters.find((parameter) => parameter.startsWith("charset="));
  const isReadable = charset === undefined || /^charset="?utf-?8"?$/.test(charset);
  return { type: isReadable ? MEANINGS.get(name) : undefined, quality: weight ? Number(weight.slice(2)) : 1 };
}

function byPreference(left: Range, right: Range): number {
  return right.quality - left.quality || Number(right.type === OWN) - Number(left.type === OWN);
}
