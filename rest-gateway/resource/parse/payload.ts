import { concatenate, HttpError } from "#http";
import type { RowPayload } from "#planner/intent";
import { type FieldError, shortenText } from "#runtime";
import { runStepwise, type Stepwise } from "#runtime/concurrency";
import { type JsonRecord, readJsonRecords } from "#runtime/json";
import type { Collection } from "../collections/collections.ts";
import { errorCodesOf, suggestName, validationError } from "../collections/errors.ts";
import type { CollectionField } from "../collections/fields.ts";
import { type ResourceRequest, readResourceBody } from "./request.ts";
import { passThrough, readMember, type SentMember, valueLengthFault } from "./values.ts";

/** The limits of members, which is the column limit of a Postgres table, and of nesting, which is beyond any real document. */
const MAX_MEMBERS = 1_600;
const MAX_LEVELS = 1_000;

/** The media types of JSON, except JSON Patch, whose operations are not supported. */
const JSON_BODY = /^application\/(?!json-patch\+)([\w.!#$&^-]+\+)?json$/i;

/** The rules by which a body is validated. */
export type PayloadRules = {
  readonly collection: Collection;
  readonly version: number;
  readonly verb: "create" | "replace" | "merge";
  /** Columns of a new row whose values the path sets. */
  readonly fixed: ReadonlyMap<string, string>;
  /** Columns that the path sets, which a body does not replace. */
  readonly addressed: ReadonlySet<string>;
};

/** The members of a row by column. */
type SentRow = ReadonlyMap<string, SentMember>;

export type ParsedPayload = { readonly payload: RowPayload; readonly rows: readonly SentRow[] };

/** Validates the rows of a body and reports all errors together. Fields that the role may read but not write are dropped. */
export function* parsePayload({ isList, records }: BodyRecords, rules: PayloadRules): Stepwise<ParsedPayload> {
  const faults = new PayloadFaults();
  const fields = new Map(rules.collection.fields.map((field) => [field.name, field]));
  const rows: SentRow[] = [];
  for (const [index, record] of records.entries()) {
    rows.push(readRow(record, fields, rules, faults.at(isList ? `${index}.` : "")));
    if (isList) yield;
    if (faults.areMany) break;
  }
  faults.refuse(errorCodesOf(rules.version).missingField);
  return { payload: { json: yield* toJson(rows, isList), ...columnsOf(rows, rules), isArray: isList }, rows };
}

function readRow(
  record: JsonRecord,
  fields: ReadonlyMap<string, CollectionField>,
  rules: PayloadRules,
  faults: RowFaults,
): SentRow {
  const { verb, fixed } = rules;
  const values = new Map<string, SentMember>();
  for (const [column, value] of fixed) values.set(column, { text: JSON.stringify(value), value, fault: null });
  for (const [name, member] of record.members()) {
    const field = fields.get(name);
    if (!field) {
      faults.wrong(name, () => `Unknown field.${suggestName(name, writtenNames(rules))}`);
    } else if (isWritten(field, rules) && !fixed.has(field.column.name)) {
      const sent = field.isReadByFunction.json ? passThrough(member) : readMember(field.column.type, member);
      const fault = sent.fault ?? (sent.text === "null" ? null : valueLengthFault(field.column, sent.value));
      if (fault) faults.wrong(name, () => `It ${fault}.`);
      values.set(field.column.name, sent);
    } else if (!mayBeSentBack(field, rules)) {
      faults.wrong(name, () => "This field cannot be written by this method.");
    }
  }
  if (verb !== "merge") {
    for (const { name, column } of fields.values().filter((field) => isRequired(field, rules))) {
      const { text = "null" } = values.get(column.name) ?? {};
      if (text === "null") faults.missing(name, () => "This field is required.");
    }
  }
  return values;
}

/** Returns the columns of a write. A replacement sets missing fields to their defaults, so it names every writable column. */
function columnsOf(rows: readonly SentRow[], rules: PayloadRules): Pick<RowPayload, "columns" | "incompleteColumns"> {
  const counts = new Map<string, number>();
  for (const row of rows) for (const column of row.keys()) counts.set(column, (counts.get(column) ?? 0) + 1);
  if (rules.verb === "replace") {
    for (const field of rules.collection.fields) {
      const { name } = field.column;
      if (isWritten(field, rules) && !counts.has(name)) counts.set(name, 0);
    }
  }
  const columns = [...counts.keys()].sort();
  return { columns, incompleteColumns: columns.filter((name) => counts.get(name)! < rows.length) };
}

function* toJson(rows: readonly SentRow[], isList: boolean): Stepwise<Buffer> {
  if (!isList) return Buffer.from(toJsonObject(rows[0]!));
  const pieces: Buffer[] = [];
  let bytes = 0;
  for (const [index, row] of rows.entries()) {
    const piece = Buffer.from(`${index === 0 ? "[" : ","}${toJsonObject(row)}${index === rows.length - 1 ? "]" : ""}`);
    bytes += piece.length;
    pieces.push(piece);
    yield;
  }
  return yield* concatenate(pieces, bytes);
}

export function toJsonObject(members: ReadonlyMap<string, Pick<SentMember, "text">>): string {
  let text = "";
  for (const [name, member] of members) text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${member.text}`;
  return `{${text}}`;
}

function writtenNames(rules: PayloadRules): readonly string[] {
  return rules.collection.fields.filter((field) => isWritten(field, rules)).map(({ name }) => name);
}

function isWritten({ insertable, updatable, column }: CollectionField, { verb, addressed }: PayloadRules): boolean {
  if (verb === "create") return insertable;
  return updatable && (verb === "merge" || !addressed.has(column.name));
}

/** Returns true if a client may send the field back, because it has read it or the path contains it. */
function mayBeSentBack({ readable, column }: CollectionField, { fixed, addressed }: PayloadRules): boolean {
  return readable || fixed.has(column.name) || addressed.has(column.name);
}

function isRequired(field: CollectionField, rules: PayloadRules): boolean {
  if (rules.verb === "create") return field.required;
  const { nullable, default: byDefault, identity } = field.column;
  return isWritten(field, rules) && !nullable && byDefault === null && identity === null;
}

type ReportFault = (name: string, message: () => string) => void;
type RowFaults = { readonly wrong: ReportFault; readonly missing: ReportFault };

/** The maximum number of errors: more are not useful, and each costs time. */
const MAX_FAULTS = 100;
/** A length above that of any column name. */
const LONGEST_NAME = 100;

class PayloadFaults {
  readonly #wrong: FieldError[] = [];
  readonly #missing: FieldError[] = [];

  get areMany(): boolean {
    return this.#wrong.length + this.#missing.length >= MAX_FAULTS;
  }

  /** Returns the collector of the errors of one row of a list. */
  at(prefix: string): RowFaults {
    const reportTo =
      (faults: FieldError[]): ReportFault =>
      (name, message) => {
        if (this.areMany) return;
        const field = name.length > LONGEST_NAME ? `${shortenText(name, LONGEST_NAME)}…` : name;
        faults.push({ field: prefix + field, message: message() });
      };
    return { wrong: reportTo(this.#wrong), missing: reportTo(this.#missing) };
  }

  refuse(missingField: string): void {
    const all = [...this.#missing, ...this.#wrong];
    if (all.length > 0) throw validationError(all, this.#wrong.length === 0 ? missingField : "VALIDATION_ERROR");
  }
}

/** The object of a body, or the objects of its list. */
export type BodyRecords = { readonly isList: boolean; readonly records: readonly JsonRecord[] };

/** Reads a JSON body. Rejects other types and bodies above the limits. */
export async function readBodyRecords(parsed: ResourceRequest): Promise<BodyRecords> {
  const { request, collections, settings } = parsed;
  const bytes = await readResourceBody(parsed);
  const [type = ""] = (request.headers["content-type"] ?? "application/json").split(";");
  if (!JSON_BODY.test(type.trim())) {
    throw new HttpError(415, "UNSUPPORTED_MEDIA_TYPE", "The body must be JSON: send it as application/json.", {
      headers: { Accept: "application/json" },
    });
  }
  const { maxPageSize: maxRecords, maxRowBytes } = settings;
  const limits = { maxRecords: maxRecords, maxMembers: MAX_MEMBERS, maxLevels: MAX_LEVELS };
  const found = await runStepwise(readJsonRecords(bytes, limits), request.signal);
  switch (found.kind) {
    case "invalid":
      // The parser's message is not used: it quotes the body, which may contain a password.
      throw new HttpError(400, errorCodesOf(collections.version).invalidJson, "The body is not valid JSON.");
    case "too deep":
      throw new HttpError(400, "VALIDATION_ERROR", "The body is nested too deeply.");
    case "too many members":
      throw new HttpError(400, "VALIDATION_ERROR", `An object may have at most ${MAX_MEMBERS} members.`);
    case "other":
      throw notAnObject();
    case "list":
      if (parsed.target.key !== null) throw notAnObject();
      if (found.count === 0 || found.count > maxRecords) {
        throw new HttpError(400, "VALIDATION_ERROR", `Send between 1 and ${maxRecords} rows.`);
      }
  }
  if (found.records.some(({ length }) => length > maxRowBytes)) throw rowTooLarge(maxRowBytes);
  return { isList: found.kind === "list", records: found.records };
}

function notAnObject(): HttpError {
  return new HttpError(400, "VALIDATION_ERROR", "The body must be a JSON object.");
}

function rowTooLarge(max: number): HttpError {
  return new HttpError(413, "PAYLOAD_TOO_LARGE", `A row may not be larger than ${max} bytes.`);
}
