import { ApiError } from "../../../engine/errors.ts";
import { type JsonRecord, readRecords } from "../../../engine/json/records.ts";
import { runStepwise } from "../../../engine/stepwise.ts";
import { type Asked, readBody } from "../asked.ts";
import { codesOf } from "../refusals.ts";

/** The objects of a body: the one that it is, or those of its list. */
export type Records = { readonly isList: boolean; readonly records: readonly JsonRecord[] };

/** As many members as a table of Postgres has columns, and deeper than anybody writes. */
const MOST_MEMBERS = 1_600;
const MOST_LEVELS = 1_000;

/** A JSON Patch is JSON as well, and no row: its operations are not done here. */
const JSON_BODY = /^application\/(?!json-patch\+)([\w.!#$&^-]+\+)?json$/i;

/** Refuses what is no JSON, or more of it than a request may have. */
export async function readBodyRecords(asked: Asked): Promise<Records> {
  const { request, collections, settings } = asked;
  const bytes = await readBody(asked);
  const [type = ""] = (request.headers["content-type"] ?? "application/json").split(";");
  if (!JSON_BODY.test(type.trim())) {
    throw new ApiError(415, "UNSUPPORTED_MEDIA_TYPE", "The body is to be JSON: send it as application/json.", {
      headers: { Accept: "application/json" },
    });
  }
  const { maxPageSize: mostRecords, maxRowBytes } = settings;
  const limits = { mostRecords, mostMembers: MOST_MEMBERS, mostLevels: MOST_LEVELS };
  const found = await runStepwise(readRecords(bytes, limits), request.signal);
  switch (found.kind) {
    case "invalid":
      // What a parser says of its fault is left out: it quotes the body, which may hold a password.
      throw new ApiError(400, codesOf(collections.version).invalidJson, "The body is not valid JSON.");
    case "too deep":
      throw new ApiError(400, "VALIDATION_ERROR", "The body is nested too deeply.");
    case "too many members":
      throw new ApiError(400, "VALIDATION_ERROR", `An object may have at most ${MOST_MEMBERS} members.`);
    case "other":
      throw notAnObject();
    case "list":
      if (asked.target.key !== null) throw notAnObject();
      if (found.count === 0 || found.count > mostRecords) {
        throw new ApiError(400, "VALIDATION_ERROR", `Send between 1 and ${mostRecords} rows.`);
      }
  }
  if (found.records.some(({ length }) => length > maxRowBytes)) throw tooLarge(maxRowBytes);
  return { isList: found.kind === "list", records: found.records };
}

function notAnObject(): ApiError {
  return new ApiError(400, "VALIDATION_ERROR", "The body is to be a JSON object.");
}

function tooLarge(most: number): ApiError {
  return new ApiError(413, "PAYLOAD_TOO_LARGE", `A row may not be larger than ${most} bytes.`);
}
