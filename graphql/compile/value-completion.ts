import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import {
  type ExecutionResult,
  executeSync,
  type FieldNode,
  type GraphQLField,
  type GraphQLFieldResolver,
} from "grafast/graphql";
import { type Codec, sourceOf } from "#plugins";
import { isJsonObject, type JsonObject } from "#runtime/json";
import type { CoercedVariables, Parameter, RequestedOperation } from "./operation-values.ts";
import { castToText, textLiteral } from "./spell-value.ts";

/** The members of the objects that stand for a leaf, an error, and an object with its type; none is a name of GraphQL. */
const LEAF = "@";
const ERROR = "!";
export const TYPE = ":";
export const OBJECT = "{}";

/** Fields that no statement reads, with their errors. */
export type LeftOutFields = ReadonlyMap<FieldNode, Error>;

/**
 * The values of a statement that graphql-js completes (section 6.4.3 of the GraphQL specification). Postgres returns the text of each leaf as it
 * has it, so that a value that has no form in GraphQL is an error of its field.
 */
export class ValueCompletion {
  readonly #variables: CoercedVariables;
  readonly #leftOut: LeftOutFields;
  readonly #codecs: Codec[] = [];
  readonly #errors: Error[] = [];

  constructor(variables: CoercedVariables, leftOut: LeftOutFields) {
    this.#variables = variables;
    this.#leftOut = leftOut;
  }

  /** The text of a leaf, never null. */
  leaf(value: SQL, codec: Codec): SQL {
    const index = this.#codecs.push(codec) - 1;
    const text = sql`pg_catalog.to_json(${castToText(value, codec)})::pg_catalog.text`;
    return sql`coalesce(${textLiteral(`{"${LEAF}":[${index},`)} operator(pg_catalog.||) ${text} operator(pg_catalog.||) ${textLiteral("]}")}, 'null')`;
  }

  /** The text that stands for an error, at each occurrence of a field. */
  failure(error: Error): SQL {
    return textLiteral(`{"${ERROR}":${this.#errors.push(error) - 1}}`);
  }

  /** Throws if a value of the text is refused. */
  checkValues(text: SQL): void {
    for (const value of sql.compile(text).values as unknown[]) {
      if (typeof value === "function") (value as Parameter)(this.#variables);
    }
  }

  /** The text that stands for the error of a field that is left out; null for other fields. */
  errorOf(node: FieldNode): SQL | null {
    const error = this.#leftOut.get(node);
    return error ? this.failure(error) : null;
  }

  /** The value that a member of the statement's JSON stands for; an error where there is one. */
  read(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.read(item));
    if (!isJsonObject(value)) return value;
    const leaf = value[LEAF] as readonly [index: number, text: string] | undefined;
    if (leaf) return this.#fromPg(leaf);
    const error = value[ERROR] as number | undefined;
    if (error !== undefined) return this.#errors[error]!;
    const type = value[TYPE] as string | undefined;
    return new CompletedRow(this, type === undefined ? value : (value[OBJECT] as JsonObject), type);
  }

  #fromPg([index, text]: readonly [index: number, text: string]): unknown {
    try {
      return this.#codecs[index]!.fromPg(text);
    } catch (error) {
      return error;
    }
  }
}

/** An object of a statement's JSON. */
class CompletedRow {
  readonly completion: ValueCompletion;
  readonly members: JsonObject;
  /** Undefined where the field has objects of one type. */
  readonly type: string | undefined;

  constructor(completion: ValueCompletion, members: JsonObject, type: string | undefined) {
    this.completion = completion;
    this.members = members;
    this.type = type;
  }
}

/** The value of a field of the operation itself: a member of a statement's JSON, or the error of the statement. */
export type RootValue = { readonly completion: ValueCompletion; readonly value: unknown } | Error;

/** Completes the values of the operation's fields; graphql-js answers introspection by itself. */
export function completeResult(
  { schema, document, operationName, variables }: RequestedOperation,
  values: ReadonlyMap<string, RootValue>,
): ExecutionResult {
  const resolve: GraphQLFieldResolver<unknown, unknown> = (
    source,
    _args,
    _context,
    { path, parentType, fieldName },
  ) => {
    const { key } = path;
    if (source instanceof CompletedRow) return source.completion.read(source.members[key]);
    if (isJsonObject(source)) return memberOf(source, parentType.getFields()[fieldName]!);
    const root = values.get(String(key));
    return root instanceof Error ? root : root?.completion.read(root.value);
  };
  return executeSync({
    schema,
    document,
    operationName,
    variableValues: variables,
    fieldResolver: resolve,
    typeResolver: (row) => (row as CompletedRow).type,
  });
}

/** A member of a value that its codec has read as an object: an attribute, or a part of a range or a geometric value. */
function memberOf(value: JsonObject, field: GraphQLField<unknown, unknown>): unknown {
  const source = sourceOf(field);
  return value[source?.kind === "column" ? source.column : field.name];
}
