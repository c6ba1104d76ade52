import type { FieldError } from "../../engine/errors.ts";
import type { JsonMember } from "../../engine/json/json-records.ts";
import type { CallIntent } from "../../engine/statement/intent.ts";
import { type RowAction, returnsRowOf } from "./collections.ts";
import { errorCodesOf, rowNotFound, suggestName, validationError } from "./errors.ts";
import { makeReadIntent, rowConditions, targetOf, toShape } from "./intents.ts";
import { selectEveryField } from "./parse/fields.ts";
import { parseRowParameters } from "./parse/parameters.ts";
import { readBodyRecords, toJsonObject } from "./parse/payload.ts";
import { readMember, type SentMember } from "./parse/values.ts";
import { parameterContext } from "./read.ts";
import { type ResourceOperation, type ResourceRequest, type RunRows, readResourceBody } from "./request.ts";
import { withLinks } from "./respond/links.ts";
import { respondWithRow } from "./respond/respond.ts";
import { rememberRows } from "./sent-values.ts";
import { explainNothingWritten, writeConditions } from "./write.ts";

/** Calls the function that takes the row. A returned row of the collection gets the response of a row. */
export function callAction(resource: ResourceRequest): ResourceOperation {
  const { collection, action } = resource.target;
  const { returns } = action!.routine;
  const returnsRow = returnsRowOf(collection, action!.routine);
  let requested: { readonly links: boolean };
  return {
    intent: () => {
      requested = parseRowParameters(resource.parameters, parameterContext(resource), { choosing: false });
      return makeCallIntent(resource, returnsRow);
    },
    // A set may be empty although the row exists. Otherwise an empty result shows that there is no such row.
    precheck: returns.set || hasPreconditions(resource) ? (run) => checkPreconditions(resource, run) : undefined,
    respond: async ({ text, count }, run) => {
      if (count === 0 && !returns.set) throw rowNotFound(collection);
      if (returns.shape === "void") return { status: 204, headers: {}, body: null };
      const { negotiated } = resource;
      if (!returnsRow || returns.set) {
        return { status: 200, headers: { "Content-Type": negotiated.contentType }, body: text };
      }
      const isLinked = requested.links || negotiated.links;
      const linked = isLinked ? await withLinks(text, collection, resource, run) : null;
      return respondWithRow(resource, { status: 200, text, collection, select: selectEveryField(collection), linked });
    },
  };
}

function hasPreconditions({ request: { headers } }: ResourceRequest): boolean {
  return ["if-match", "if-none-match", "if-unmodified-since"].some((name) => headers[name] !== undefined);
}

/** Checked before the call; what the function does with the row in between is up to the function. */
async function checkPreconditions(parsed: ResourceRequest, run: RunRows): Promise<void> {
  const { collection } = parsed.target;
  const select = selectEveryField(collection);
  const { count } = await run(makeReadIntent(collection, { select, conditions: await writeConditions(parsed, run) }));
  if (count === 0) throw await explainNothingWritten(parsed, select, run);
}

async function makeCallIntent(parsed: ResourceRequest, returnsRow: boolean): Promise<CallIntent> {
  const { collection, key, action, nested, parents } = parsed.target;
  const members = parseArguments(await readArguments(parsed), action!, parsed.collections.version);
  const argument = {
    kind: "json",
    body: Buffer.from(toJsonObject(members)),
    names: [...members.keys()].sort(),
  } as const;
  rememberRows(argument, [members]);
  return {
    kind: "call",
    target: targetOf(action!.routine),
    argument,
    selection: toShape({ select: returnsRow ? selectEveryField(collection) : [] }),
    count: null,
    page: null,
    readOnly: false,
    row: { of: targetOf(collection.table), conditions: rowConditions({ collection, key: key!, nested }, parents) },
  };
}

/** None without a body. */
async function readArguments(parsed: ResourceRequest): Promise<ReadonlyMap<string, JsonMember>> {
  const bytes = await readResourceBody(parsed);
  if (bytes.length === 0) return new Map();
  const { records } = await readBodyRecords(parsed);
  return records[0]!.members();
}

/** By their names in SQL. */
function parseArguments(
  sent: ReadonlyMap<string, JsonMember>,
  action: RowAction,
  version: number,
): ReadonlyMap<string, SentMember> {
  const faults: FieldError[] = [];
  const names = action.arguments.map(({ name }) => name);
  const members = new Map<string, SentMember>();
  for (const [name, member] of sent) {
    const argument = action.arguments.find((each) => each.name === name);
    if (!argument) {
      faults.push({ field: name, message: `Unknown argument.${suggestName(name, names)}` });
      continue;
    }
    const read = readMember(argument.argument.type, member);
    if (read.fault) faults.push({ field: name, message: `It ${read.fault}.` });
    members.set(argument.argument.name!, read);
  }
  if (faults.length > 0) throw validationError(faults);
  // Postgres resolves a variadic function by positional arguments only: none may be omitted before a passed one.
  const isVariadic = action.arguments.some(({ argument }) => argument.mode === "variadic");
  const lastPlaced = isVariadic ? action.arguments.findLastIndex(({ name }) => sent.has(name)) : 0;
  const missing = action.arguments
    .filter(({ name, argument }, at) => (argument.required || at < lastPlaced) && !sent.has(name))
    .map(({ name }) => ({ field: name, message: "This argument is required." }));
  if (missing.length > 0) throw validationError(missing, errorCodesOf(version).missingField);
  return members;
}
