import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import type { DocumentNode, GraphQLObjectType, GraphQLSchema, OperationDefinitionNode } from "grafast/graphql";
import { isTransaction } from "#plugins";
import type { ParameterValue } from "#postgres/statement";
import type { Stepwise } from "#runtime/concurrency";
import { NotCompiled } from "./not-compiled.ts";
import { OperationCompiler, type SeparateFields } from "./operation-compiler.ts";
import { type CoercedVariables, OperationValues, type Parameter } from "./operation-values.ts";
import type { RowWrite } from "./row-write.ts";
import {
  isTypename,
  oneFieldEach,
  type RootField,
  type SelectedField,
  SelectionReader,
  withFields,
} from "./selection-reader.ts";
import { toPgText } from "./text-values.ts";
import type { ValueCompletion } from "./value-completion.ts";

/** A query, or one field of a mutation: a statement that returns the text of these fields of `data`. */
export type CompiledStep = CompiledStatement & {
  /** The document with the fields of the step only, for when each is repeated by itself. */
  readonly document: DocumentNode;
  /** The call of a mutation's function, or the write of a row, sent first in the same transaction. */
  readonly before: CompiledStatement | null;
  readonly readOnly: boolean;
  /** True if it creates a user. */
  readonly countsSignUp: boolean;
  /** In a transaction, a statement that returns a row if the function's result says that it was not successful. */
  readonly failureText: string | null;
  /** The row that it writes, by this statement or the one before. Null: it writes by a function, or reads. */
  readonly write: RowWrite | null;
  /** The selected fields of a single field that may fail by themselves. */
  readonly separateFields: readonly SeparateFields[];
  /** The text holds JSON of the database, which must be written again in JavaScript's format. */
  readonly holdsJson: boolean;
  readonly rootFields: readonly RootField[];
};

/** The steps run one after the other. Each field of a mutation is a transaction of its own, unless the operation is one. */
export type CompiledOperation = readonly CompiledStep[];

export type CompiledStatement = {
  readonly text: string;
  readonly parameters: readonly (Parameter | ParameterValue)[];
};

/** A statement of all fields that is longer takes Postgres too long to plan. */
const MAX_TEXT_LENGTH = 200_000;

type CompileOptions = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: CoercedVariables;
  /** Receives the names of variables whose values are part of the text. */
  readonly fixed: Set<string>;
};

/** Throws NotCompiled for an operation that has a field without a source, or a value that SQL cannot spell. */
export function* compileOperation({
  schema,
  document,
  operation,
  variables,
  fixed,
}: CompileOptions): Stepwise<CompiledOperation> {
  yield;
  const type = schema.getRootType(operation.operation)!;
  const values = new OperationValues(schema, variables, fixed);
  const selections = new SelectionReader(schema, document, values);
  const fields = [...selections.fieldsOf(type, [operation.selectionSet])];
  if (fields.every(([, nodes]) => isTypename(nodes))) {
    throw new NotCompiled("introspection", "It reads nothing of the database.");
  }
  const groups = type === schema.getMutationType() ? oneFieldEach(fields) : [fields];
  const steps: CompiledStep[] = [];
  for (const own of groups) {
    const whole = groups.length === 1 ? document : withFields(document, operation, own);
    const step = yield* compileStep({ operation, type, selections, values, completion: null }, own);
    for (const { text } of [step, step.before ?? step]) {
      if (text.length > MAX_TEXT_LENGTH) throw new NotCompiled("size", String(text.length));
    }
    steps.push({ ...step, document: whole });
  }
  return steps;
}

export type StepOptions = {
  readonly operation: OperationDefinitionNode;
  readonly type: GraphQLObjectType;
  readonly selections: SelectionReader;
  readonly values: OperationValues;
  /** Null: Postgres writes the values as they are in the response. */
  readonly completion: ValueCompletion | null;
};

/** The statement for these fields of the operation. */
export function* compileStep(
  { operation, type, selections, values, completion }: StepOptions,
  fields: readonly SelectedField[],
): Stepwise<Omit<CompiledStep, "document">> {
  const compiler = new OperationCompiler(selections, values, completion);
  const rootFields: RootField[] = [];
  const data = yield* compiler.root(type, fields, rootFields);
  const { call, callsFunction, countsSignUp, write, separateFields, holdsJson } = compiler;
  const failureText = isTransaction(operation) ? compiler.failureText : null;
  const statement = toStatement(write ? write.statementOf(data) : sql`select ${data}`);
  const before = write ? write.before : call;
  const compiledBefore = before && toStatement(before);
  return {
    ...statement,
    before: compiledBefore,
    readOnly: write === null && !callsFunction,
    countsSignUp,
    failureText,
    write,
    separateFields,
    holdsJson,
    rootFields,
  };
}

function toStatement(whole: SQL): CompiledStatement {
  const { text, values } = sql.compile(whole);
  const parameters = (values as unknown[]).map((value) =>
    typeof value === "function" ? (value as Parameter) : toPgText(value),
  );
  return { text, parameters };
}
