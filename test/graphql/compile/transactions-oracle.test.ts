import fc from "fast-check";
import {
  type DocumentNode,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  parse,
  print,
  separateOperations,
  validate,
  visit,
} from "grafast/graphql";
import type pg from "pg";
import { describe, expect, test } from "vitest";
import { OperationValues } from "../../../graphql/compile/operation-values.ts";
import { oneFieldEach, SelectionReader, withFields } from "../../../graphql/compile/selection-reader.ts";
import type { ServiceOptions } from "../../../service/wiring/running-service.ts";
import type { Service } from "../../../service/wiring/service.ts";
import { cloneDatabase } from "../../database.ts";
import { connect } from "../../db/callers.ts";
import { slowPropertyRuns } from "../../property-runs.ts";
import { keepRows } from "../../restore-rows.ts";
import { serve } from "../../serve.ts";
import { BY_GRAFAST } from "../grafast/grafast-stages.ts";
import { type GeneratedOperation, mutationsOf } from "./operations.ts";
import { type Answer, answerOf, POOL, schemaFor, withoutChosenRows } from "./oracle.ts";
import { CALLERS_OF_TABLES, stateOf, TABLES } from "./written-tables.ts";

type ServedDatabase = { readonly owner: pg.Client; readonly service: Service };

/** The same fields as operations of their own, in order. */
function fieldByField({ query, variables }: GeneratedOperation, schema: GraphQLSchema): GeneratedOperation[] {
  const document = parse(query);
  const operation = operationIn(document);
  const values = new OperationValues(schema, variables, new Set());
  const selections = new SelectionReader(schema, document, values);
  const fields = [...selections.fieldsOf(schema.getMutationType()!, [operation.selectionSet])];
  // All may be left out by `@include(if: false)`; an operation without fields cannot be written.
  if (fields.length === 0) return [];
  return oneFieldEach(fields).map((own) => {
    const [single] = Object.values(separateOperations(withFields(document, operation, own)));
    const used = new Set<string>();
    visit(operationIn(single!).selectionSet, { Variable: ({ name }) => void used.add(name.value) });
    for (const definition of single!.definitions) {
      if (definition.kind !== Kind.FRAGMENT_DEFINITION) continue;
      visit(definition, { Variable: ({ name }) => void used.add(name.value) });
    }
    const trimmed = visit(single!, {
      VariableDefinition: ({ variable }) => (used.has(variable.name.value) ? undefined : null),
    });
    const given = Object.entries(variables).filter(([name]) => used.has(name));
    return { query: print(trimmed), variables: Object.fromEntries(given) };
  });
}

function isValid(query: string, schema: GraphQLSchema): boolean {
  try {
    return validate(schema, parse(query)).length === 0;
  } catch {
    return false;
  }
}

function operationIn({ definitions }: DocumentNode): OperationDefinitionNode {
  return definitions.find((definition) => definition.kind === Kind.OPERATION_DEFINITION)!;
}

function asTransaction({ query, variables }: GeneratedOperation): GeneratedOperation {
  const document = visit(parse(query), {
    OperationDefinition: (operation) => ({
      ...operation,
      directives: [{ kind: Kind.DIRECTIVE, name: { kind: Kind.NAME, value: "transaction" } }] as const,
    }),
  });
  return { query: print(document), variables };
}

/** Their answers until the first that fails. */
async function answersOf(service: Service, operations: readonly GeneratedOperation[], token: string | null) {
  const answers: Answer[] = [];
  for (const operation of operations) {
    const answer = await answerOf(service, operation, token);
    answers.push(answer);
    if (answer.errors) break;
  }
  return answers;
}

type ErrorEntry = {
  readonly message: string;
  readonly path?: readonly unknown[];
  readonly extensions: { readonly code: string };
};

const errorsOf = ({ errors }: Answer) => (errors ?? []) as readonly ErrorEntry[];

/** A constraint that is deferred fails at the commit: of a field, or of the transaction, unless another field fails before. */
const DEFERRED = "Refused at commit";
const TELL_DEFERRED = `create or replace function hidden.check_part() returns trigger language plpgsql as $$ begin
  raise exception '${DEFERRED}' using errcode = 'P0001';
end $$`;

function expectFailure(transaction: Answer, failed: Answer): void {
  const errors = errorsOf(transaction);
  expect(transaction.data).toBe("null");
  expect(errors.at(-1)).toMatchObject({ extensions: { code: "TRANSACTION_ROLLED_BACK" } });
  const own = errorsOf(failed);
  if (own.some(({ message }) => message.includes(DEFERRED))) return;
  expect(rootErrors(errors.slice(0, -1))).toEqual(rootErrors(own));
  expect(errors.at(-1)!.message).toBe(`Nothing was changed, because the field "${own[0]!.path![0]}" failed.`);
}

/** The errors of the fields of the operation, each once: Grafast may report one for several parts. */
function rootErrors(errors: readonly ErrorEntry[]): ReadonlySet<string> {
  const listed = withoutChosenRows(errors.map(ofRoot)) as readonly unknown[];
  return new Set(listed.map((error) => JSON.stringify(error)));
}

/** Which of several selected fields fails first is chance. */
function ofRoot({ path, ...error }: ErrorEntry): ErrorEntry {
  return { ...error, ...(path && { path: path.slice(0, 1) }) };
}

function joined(answers: readonly Answer[]): string {
  return `{${answers.map(({ data }) => data!.slice(1, -1)).join()}}`;
}

describe("a generated mutation with @transaction", () => {
  test("leaves and answers what its fields do as operations of their own, or changes nothing", async () => {
    await using opened = new AsyncDisposableStack();
    const open = async (options?: Partial<ServiceOptions>): Promise<ServedDatabase> => {
      const database = await cloneDatabase("empty");
      opened.defer(() => database.drop());
      const owner = await connect(database.ownerUrl);
      opened.defer(() => owner.end());
      await owner.query(TABLES);
      await owner.query(TELL_DEFERRED);
      const service = await serve(database, { ADMIN_PORT: "0" }, options);
      opened.defer(() => service.stop());
      return { owner, service };
    };
    const compiling = await open();
    const plain = await open(BY_GRAFAST);
    const separate = await open();
    const counts = { committed: 0, rolledBack: 0, failedLater: 0 };

    for (const [, token] of CALLERS_OF_TABLES) {
      const schema = await schemaFor(separate.service, token);
      const property = fc.asyncProperty(mutationsOf(schema, POOL, [2, 3, 4]), async (operation) => {
        fc.pre(isValid(operation.query, schema));
        const singles = fieldByField(operation, schema);
        const restore = await keepRows(separate.owner);
        const before = await stateOf(separate.owner);
        const answers = await answersOf(separate.service, singles, token);
        const failed = answers.find(({ errors }) => errors !== undefined);
        for (const side of [compiling, plain]) {
          const transaction = await answerOf(side.service, asTransaction(operation), token);
          if (transaction.data === null) expect(failed).toBeDefined();
          else if (failed) expectFailure(transaction, failed);
          else expect(transaction).toEqual({ data: joined(answers), errors: undefined });
        }
        if (failed) await restore();
        counts[failed ? "rolledBack" : "committed"]++;
        if (failed && answers.length > 1) counts.failedLater++;
        const after = await stateOf(separate.owner);
        if (failed) expect(after).toEqual(before);
        expect(await stateOf(compiling.owner)).toEqual(after);
        expect(await stateOf(plain.owner)).toEqual(after);
      });
      // A mutation is not repeated on the same rows.
      await fc.assert(property, { numRuns: slowPropertyRuns(300), endOnFailure: true });
    }
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(5);
  });
});
