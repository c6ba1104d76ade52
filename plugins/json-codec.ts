import { listOfCodec, TYPES } from "postgraphile/@dataplan/pg";
import { parseExactly } from "../engine/exact-json.ts";
import type { Codec } from "./table.ts";

/** Core makes numbers of JavaScript of those in JSON, which lose digits. */
export const JSON_TYPES = {
  json: { ...TYPES.json, fromPg: parseExactly },
  jsonb: { ...TYPES.jsonb, fromPg: parseExactly },
} satisfies Readonly<Record<string, Codec>>;

export const JSON_LISTS: Readonly<Record<string, Codec>> = {
  _json: listOfCodec(JSON_TYPES.json, { name: "json[]" }),
  _jsonb: listOfCodec(JSON_TYPES.jsonb, { name: "jsonb[]" }),
};

/** json and jsonb, and the domains over them. */
export function isJson(codec: Codec): boolean {
  const { json, jsonb } = JSON_TYPES;
  return codec === json || codec === jsonb || Boolean(codec.domainOfCodec && isJson(codec.domainOfCodec));
}
