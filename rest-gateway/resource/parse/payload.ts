import { ApiError, type FieldFault } from "../../../engine/errors.ts";
import { parseExactly } from "../../../engine/exact-json.ts";
import { isJsonObject } from "../../../engine/json-object.ts";
import type { Payload } from "../../statement/intent.ts";
import type { Collection } from "../collections.ts";
import type { Field } from "../fields.ts";
import { codesOf, invalid } from "../refusals.ts";
import { nearMiss } from "./near-miss.ts";
import { asWhole, faultOfJson, faultOfLength } from "./value.ts";

type Row = Readonly<Record<string, unknown>>;

/** What a body is to be. */
export type PayloadRules = {
  readonly collection: Collection;
  readonly version: number;
  readonly verb: "create" | "replace" | "merge";
  /** Most rows of one body. */
  readonly maxRows: number;
  /** Columns of a new row whose value the address says. */
  readonly fixed: ReadonlyMap<string, string>;
  /** Columns that the address speaks of: they are not for a body to replace. */
  readonly addressed: ReadonlySet<string>;
};

/** The rows of a body by their columns, with all that is wrong with them told at once. What nobody may write is left out. */
export function parsePayload(body: unknown, rules: PayloadRules): Payload {
  const isArray = Array.isArray(body);
  const rows = (isArray ? body : [body]) as readonly unknown[];
  if (isArray && rules.verb !== "create") throw notAnObject();
  if (isArray && (rows.length === 0 || rows.length > rules.maxRows)) {
    throw new ApiError(400, "VALIDATION_ERROR", `Send between 1 and ${rules.maxRows} rows.`);
  }
  const faults = new Faults();
  const read = rows.map((row, index) => {
    if (!isJsonObject(row)) throw notAnObject();
    return readRow(row, rules, faults.at(isArray ? `${index}.` : ""));
  });
  faults.refuse(codesOf(rules.version).missingField);
  return toPayload(read, rules, isArray);
}

function readRow(row: Row, rules: PayloadRules, faults: RowFaults): Map<string, unknown> {
  const { collection, verb, fixed } = rules;
  const values = new Map<string, unknown>(fixed);
  for (const [name, sent] of Object.entries(row)) {
    const field = collection.fields.find((each) => each.name === name);
    if (!field) {
      const known = collection.fields.filter((each) => isWritten(each, rules)).map((each) => each.name);
      faults.wrong({ field: name, message: `There is no such field.${nearMiss(name, known)}` });
    } else if (isWritten(field, rules) && !fixed.has(field.column.name)) {
      const value = asWhole(field.column.type, sent);
      const fault =
        value === null ? null : (faultOfJson(field.column.type, value) ?? faultOfLength(field.column, value));
      if (fault) faults.wrong({ field: name, message: `It ${fault}.` });
      values.set(field.column.name, value);
    }
  }
  if (verb !== "merge") {
    for (const { name, column } of collection.fields.filter((field) => isRequired(field, rules))) {
      if (values.get(column.name) === undefined || values.get(column.name) === null) {
        faults.missing({ field: name, message: "This field is required." });
      }
    }
  }
  return values;
}

/** What is absent from a replacement becomes its default, so the statement names every column that it may. */
function toPayload(rows: readonly Map<string, unknown>[], rules: PayloadRules, isArray: boolean): Payload {
  const named = new Set(rows.flatMap((row) => [...row.keys()]));
  const replaced = rules.collection.fields.filter((field) => rules.verb === "replace" && isWritten(field, rules));
  const columns = [...new Set([...named, ...replaced.map(({ column }) => column.name)])].sort();
  const objects = rows.map((row) => Object.fromEntries(row));
  return { json: Buffer.from(JSON.stringify(isArray ? objects : objects[0])), columns, isArray };
}

function isWritten({ insertable, updatable, column }: Field, { verb, addressed }: PayloadRules): boolean {
  if (verb === "create") return insertable;
  return updatable && (verb === "merge" || !addressed.has(column.name));
}

function isRequired(field: Field, rules: PayloadRules): boolean {
  if (rules.verb === "create") return field.required;
  const { nullable, default: byDefault, identity } = field.column;
  return isWritten(field, rules) && !nullable && byDefault === null && identity === null;
}

/** A JSON Patch is JSON as well, and no row: its operations are not done here. */
const JSON_BODY = /^application\/(?!json-patch\+)([\w.!#$&^-]+\+)?json$/i;

/** A JSON body, whatever it holds. */
export function parseBody(bytes: Buffer, contentType: string | undefined, version: number): unknown {
  const [type = ""] = (contentType ?? "application/json").split(";");
  if (!JSON_BODY.test(type.trim())) {
    throw new ApiError(415, "UNSUPPORTED_MEDIA_TYPE", "The body is to be JSON: send it as application/json.", {
      headers: { Accept: "application/json" },
    });
  }
  try {
    return parseExactly(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (fault) {
    // It is JSON, and deeper than the stack.
    if (fault instanceof RangeError) throw new ApiError(400, "VALIDATION_ERROR", "The body is nested too deeply.");
    // What the parser says of its fault is left out: it quotes the body, which may hold a password.
    throw new ApiError(400, codesOf(version).invalidJson, "The body is not valid JSON.");
  }
}

function notAnObject(): ApiError {
  return new ApiError(400, "VALIDATION_ERROR", "The body is to be a JSON object.");
}

type RowFaults = { wrong(fault: FieldFault): void; missing(fault: FieldFault): void };

class Faults {
  readonly #wrong: FieldFault[] = [];
  readonly #missing: FieldFault[] = [];

  /** Those of one row of many. */
  at(prefix: string): RowFaults {
    const named = ({ field, message }: FieldFault) => ({ field: prefix + field, message });
    return {
      wrong: (fault) => this.#wrong.push(named(fault)),
      missing: (fault) => this.#missing.push(named(fault)),
    };
  }

  refuse(missingField: string): void {
    const all = [...this.#missing, ...this.#wrong];
    if (all.length > 0) throw invalid(all, this.#wrong.length === 0 ? missingField : "VALIDATION_ERROR");
  }
}
