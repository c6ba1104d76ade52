import { concatenate } from "../../../engine/concatenate.ts";
import type { FieldFault } from "../../../engine/errors.ts";
import type { JsonRecord } from "../../../engine/json/records.ts";
import type { Stepwise } from "../../../engine/stepwise.ts";
import type { Payload } from "../../statement/intent.ts";
import type { Collection } from "../collections.ts";
import type { Field } from "../fields.ts";
import { codesOf, invalid } from "../refusals.ts";
import { rememberRows } from "../sent-values.ts";
import { nearMiss } from "./near-miss.ts";
import { asItCame, readMember, type SentMember } from "./read-member.ts";
import type { Records } from "./records.ts";
import { faultOfLength } from "./value.ts";

/** What a body is to be. */
export type PayloadRules = {
  readonly collection: Collection;
  readonly version: number;
  readonly verb: "create" | "replace" | "merge";
  /** Columns of a new row whose value the address says. */
  readonly fixed: ReadonlyMap<string, string>;
  /** Columns that the address speaks of: they are not for a body to replace. */
  readonly addressed: ReadonlySet<string>;
};

/** By column. */
type Row = ReadonlyMap<string, SentMember>;

/** The rows of a body by their columns, with all that is wrong with them told at once. What nobody may write is left out. */
export function* parsePayload({ isList, records }: Records, rules: PayloadRules): Stepwise<Payload> {
  const faults = new Faults();
  const fields = new Map(rules.collection.fields.map((field) => [field.name, field]));
  const rows: Row[] = [];
  for (const [index, record] of records.entries()) {
    rows.push(readRow(record, fields, rules, faults.at(isList ? `${index}.` : "")));
    if (isList) yield;
    if (faults.areMany) break;
  }
  faults.refuse(codesOf(rules.version).missingField);
  const payload = { json: yield* toJson(rows, isList), columns: columnsOf(rows, rules), isArray: isList };
  rememberRows(payload, rows);
  return payload;
}

function readRow(record: JsonRecord, fields: ReadonlyMap<string, Field>, rules: PayloadRules, faults: RowFaults): Row {
  const { verb, fixed } = rules;
  const values = new Map<string, SentMember>();
  for (const [column, value] of fixed) values.set(column, { text: JSON.stringify(value), value, fault: null });
  for (const [name, member] of record.members()) {
    const field = fields.get(name);
    if (!field) {
      faults.wrong(name, () => `There is no such field.${nearMiss(name, writtenNames(rules))}`);
    } else if (isWritten(field, rules) && !fixed.has(field.column.name)) {
      const sent = field.isReadByFunction.json ? asItCame(member) : readMember(field.column.type, member);
      const fault = sent.fault ?? (sent.text === "null" ? null : faultOfLength(field.column, sent.value));
      if (fault) faults.wrong(name, () => `It ${fault}.`);
      values.set(field.column.name, sent);
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

/** What is absent from a replacement becomes its default, so the statement names every column that it may. */
function columnsOf(rows: readonly Row[], rules: PayloadRules): readonly string[] {
  const columns = new Set<string>();
  for (const row of rows) for (const column of row.keys()) columns.add(column);
  if (rules.verb === "replace") {
    for (const field of rules.collection.fields) if (isWritten(field, rules)) columns.add(field.column.name);
  }
  return [...columns].sort();
}

function* toJson(rows: readonly Row[], isList: boolean): Stepwise<Buffer> {
  if (!isList) return Buffer.from(objectOf(rows[0]!));
  const pieces: Buffer[] = [];
  let bytes = 0;
  for (const [index, row] of rows.entries()) {
    const piece = Buffer.from(`${index === 0 ? "[" : ","}${objectOf(row)}${index === rows.length - 1 ? "]" : ""}`);
    bytes += piece.length;
    pieces.push(piece);
    yield;
  }
  return yield* concatenate(pieces, bytes);
}

export function objectOf(members: ReadonlyMap<string, Pick<SentMember, "text">>): string {
  let text = "";
  for (const [name, member] of members) text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${member.text}`;
  return `{${text}}`;
}

function writtenNames(rules: PayloadRules): readonly string[] {
  return rules.collection.fields.filter((field) => isWritten(field, rules)).map(({ name }) => name);
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

type Tell = (name: string, message: () => string) => void;
type RowFaults = { readonly wrong: Tell; readonly missing: Tell };

/** More of them help nobody, and finding their words costs. */
const MOST_FAULTS = 100;
/** No column has a name as long. */
const LONGEST_NAME = 100;

class Faults {
  readonly #wrong: FieldFault[] = [];
  readonly #missing: FieldFault[] = [];

  get areMany(): boolean {
    return this.#wrong.length + this.#missing.length >= MOST_FAULTS;
  }

  /** Those of one row of many. */
  at(prefix: string): RowFaults {
    const tellTo =
      (faults: FieldFault[]): Tell =>
      (name, message) => {
        if (this.areMany) return;
        const field = name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name;
        faults.push({ field: prefix + field, message: message() });
      };
    return { wrong: tellTo(this.#wrong), missing: tellTo(this.#missing) };
  }

  refuse(missingField: string): void {
    const all = [...this.#missing, ...this.#wrong];
    if (all.length > 0) throw invalid(all, this.#wrong.length === 0 ? missingField : "VALIDATION_ERROR");
  }
}
