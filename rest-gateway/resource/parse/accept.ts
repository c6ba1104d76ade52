import { ApiError } from "../../../engine/errors.ts";
import { readMediaRanges } from "../../media-range.ts";

/** In which of the types that the client takes it is answered. */
export type Agreed = {
  readonly contentType: string;
  /** `2` of `application/vnd.example.v2+json`, `2.1` of `v2.1`, which is none that is served; null where the type names none. */
  readonly version: string | null;
  /** HAL has links in each row. */
  readonly links: boolean;
};

const JSON_TYPE: Agreed = { contentType: "application/json; charset=utf-8", version: null, links: false };
const HAL: Agreed = { contentType: "application/hal+json; charset=utf-8", version: null, links: true };
/** What most clients send, axios among them. */
const USUAL: ReadonlySet<string> = new Set(["*/*", "application/json", "application/json, text/plain, */*"]);
const PLAIN = /^application\/json(;|$)/;
const ANY = /^(\*|application)\/\*(;|$)/;
const LINKED = /^application\/hal\+json(;|$)/;
const VENDOR = /^application\/vnd\.[\w.-]*?(?:\.v(?<version>\d+(?:\.\d+)*(?:-[\w.]+)?))?\+json(;|$)/;

/** The best of the types that can be made. Refuses when there is none. */
export function agreeOn(accept: string | undefined): Agreed {
  // An empty field says as little as none.
  if (accept === undefined || accept.trim() === "" || USUAL.has(accept)) return JSON_TYPE;
  const ranges = readMediaRanges(accept.toLowerCase());
  // What is named and refused is not among all that is taken besides.
  const isRefused = (named: RegExp) => ranges.some(({ type, quality }) => quality === 0 && named.test(type));
  for (const { type, quality } of ranges) {
    if (quality === 0) continue;
    if (PLAIN.test(type) || (ANY.test(type) && !isRefused(PLAIN))) return JSON_TYPE;
    if (LINKED.test(type) || (ANY.test(type) && !isRefused(LINKED))) return HAL;
    const vendor = VENDOR.exec(type);
    if (vendor) {
      const [name] = type.split(";");
      return { contentType: `${name}; charset=utf-8`, version: vendor.groups?.version ?? null, links: false };
    }
  }
  throw new ApiError(406, "NOT_ACCEPTABLE", "This interface speaks JSON: accept application/json.");
}
