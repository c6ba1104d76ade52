import type { FieldNode } from "grafast/graphql";
import pg from "pg";
import { isQueryCanceled, type ResponseBudget } from "#postgres/database";
import type { CompiledField, FieldStep } from "../compile/compile-fields.ts";
import type { SeparateFields } from "../compile/operation-compiler.ts";
import type { LeftOutFields, RootValue } from "../compile/value-completion.ts";
import type { CallerDatabase } from "./caller-database.ts";
import { type CompiledRunOptions, readStatement } from "./run-compiled.ts";

/** After so many statements that took too long, the others of the operation have the error of the last one, and do not run. */
const MAX_CANCELED = 2;

/** A field of an operation whose arguments are accepted. */
export type BoundField = CompiledField & { readonly bound: FieldStep };

type FieldReaderOptions = {
  readonly database: CallerDatabase;
  readonly options: CompiledRunOptions;
  /** The errors of statements that took too long, in the whole operation. */
  readonly canceled: Error[];
  /** Makes the memory budget of a statement whose rows are not kept. */
  readonly makeBudget: () => ResponseBudget;
  /** Compiles the field of that key without some of those that it selects. */
  readonly compileWithout: (key: string, leftOut: LeftOutFields) => CompiledField | Promise<CompiledField>;
};

/** Reads a field of an operation; without those of its fields that fail, if the statement fails. What the field writes is written before. */
export class FieldReader {
  readonly #reading: FieldReaderOptions;

  constructor(reading: FieldReaderOptions) {
    this.#reading = reading;
  }

  async read(field: BoundField): Promise<RootValue> {
    const { key, bound } = field;
    const { separateFields } = bound.step;
    const value = await this.#readOnce(field);
    if (separateFields.length === 0 || !isOfPart(value)) return value;
    const own = await this.#errorWithout(key, fieldsOf(separateFields), value);
    return own ?? this.#readWithout(key, await this.#findFailing(key, separateFields, [], value));
  }

  async #readOnce({ bound, ...field }: CompiledField, options = this.#reading.options): Promise<RootValue> {
    const { database, canceled } = this.#reading;
    if (bound instanceof Error) return bound;
    if (canceled.length >= MAX_CANCELED) return canceled.at(-1)!;
    const written = { ...field, bound: { ...bound, before: undefined, rows: undefined } };
    const read = () => readField(written, options);
    try {
      return await (database.attempt?.(read) ?? read());
    } catch (error) {
      if (isQueryCanceled(error)) canceled.push(error as Error);
      return error as Error;
    }
  }

  async #readWithout(key: string, leftOut: LeftOutFields, options = this.#reading.options): Promise<RootValue> {
    return this.#readOnce(await this.#reading.compileWithout(key, leftOut), options);
  }

  /**
   * Returns the innermost of these fields that fail, each with its own error. The statement without `others` fails by `error`, and it is
   * halved until the fields that fail are known.
   */
  async #findFailing(
    key: string,
    groups: readonly SeparateFields[],
    others: readonly FieldNode[],
    error: Error,
  ): Promise<LeftOutFields> {
    const [group] = groups;
    if (group === undefined) return new Map();
    if (groups.length === 1) return this.#findWithin(key, group, others, error);
    const failing = new Map<FieldNode, Error>();
    const middle = groups.length >> 1;
    const halves = [groups.slice(0, middle), groups.slice(middle)] as const;
    for (const [half, other] of [halves, halves.toReversed() as [SeparateFields[], SeparateFields[]]]) {
      const without = [...others, ...fieldsOf(other)];
      const own = await this.#errorWithout(key, without, error);
      if (!own) continue;
      for (const [node, found] of await this.#findFailing(key, half, without, own)) failing.set(node, found);
    }
    return failing;
  }

  /** The fields within a field that fail; the field itself if it fails without them. */
  async #findWithin(
    key: string,
    { fields, within }: SeparateFields,
    others: readonly FieldNode[],
    error: Error,
  ): Promise<LeftOutFields> {
    const inner = within();
    if (inner.length > 0) {
      const own = await this.#errorWithout(key, [...others, ...fieldsOf(inner)], error);
      if (!own) return this.#findFailing(key, inner, others, error);
    }
    return new Map(fields.map((field) => [field, error]));
  }

  async #errorWithout(key: string, leftOut: readonly FieldNode[], error: Error): Promise<Error | null> {
    const budget = this.#reading.makeBudget();
    const options = { ...this.#reading.options, budget, admit: () => {} };
    const value = await this.#readWithout(key, new Map(leftOut.map((field) => [field, error])), options);
    budget.giveAllBack();
    return value instanceof Error ? value : null;
  }
}

/** Runs the statements of a field. */
export async function readField(
  { key, completion, bound }: BoundField,
  options: CompiledRunOptions,
): Promise<RootValue> {
  const data = JSON.parse(String(await readStatement(bound, options)));
  return { completion, value: data[key] };
}

/** True for an error that may be due to a part of the field. */
function isOfPart(value: RootValue): value is pg.DatabaseError {
  return value instanceof pg.DatabaseError && !isQueryCanceled(value);
}

function fieldsOf(groups: readonly SeparateFields[]): readonly FieldNode[] {
  return groups.flatMap(({ fields }) => fields);
}
