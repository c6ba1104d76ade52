import type { FieldError } from "../../engine/errors.ts";
import type { JsonMember } from "../../engine/json/json-records.ts";
import type { CallIntent } from "../../engine/statement/intent.ts";
import type { GatewayResponse } from "../http/response.ts";
import { explainNothingWritten, writeConditions } from "./change.ts";
import { type RowAction, returnsRowOf } from "./collections.ts";
import { errorCodesOf, rowNotFound, suggestName, validationError } from "./errors.ts";
import { makeReadIntent, rowConditions, targetOf, toShape } from "./intents.ts";
import { selectEveryField } from "./parse/fields.ts";
import { parseRowParameters } from "./parse/parameters.ts";
import { readBodyRecords, toJsonObject } from "./parse/payload.ts";
import { readMember, type SentMember } from "./parse/values.ts";
import { parameterContext } from "./read.ts";
import { type ResourceRequest, type RunIntent, readResourceBody, withBody } from "./request.ts";
import { withLinks } from "./respond/links.ts";
import { respondWithRow } from "./respond/respond.ts";
import { rememberRows } from "./sent-values.ts";

/** Calls the function that takes the row. What gives a row of the collection is answered like one. */
export async function callAction(parsed: ResourceRequest, run: RunIntent): Promise<GatewayResponse> {
  const { target, negotiated: agreed } = parsed;
  const { collection } = target;
  const { routine } = target.action!;
  const { links, givesOwnRow, intent } = await parseAction(parsed);
  // A set may be empty though there is a row. Elsewhere the call itself tells that there is none.
  if (routine.returns.set || hasPreconditions(parsed)) await checkPreconditions(parsed, run);
  const rows = await run(intent);
  if (rows.count === 0 && !routine.returns.set) throw rowNotFound(collection);
  if (routine.returns.shape === "void") return { status: 204, headers: {}, body: null };
  if (givesOwnRow && !routine.returns.set) {
    const linked = links || agreed.links ? await withLinks(rows.text, collection, parsed, run) : null;
    return respondWithRow(parsed, {
      status: 200,
      text: rows.text,
      collection,
      select: selectEveryField(collection),
      linked,
    });
  }
  return { status: 200, headers: { "Content-Type": agreed.contentType }, body: rows.text };
}

function hasPreconditions({ request: { headers } }: ResourceRequest): boolean {
  return ["if-match", "if-none-match", "if-unmodified-since"].some((name) => headers[name] !== undefined);
}

/** A look before the call: what the function does to the row meanwhile is its own business. */
async function checkPreconditions(parsed: ResourceRequest, run: RunIntent): Promise<void> {
  const { collection } = parsed.target;
  const select = selectEveryField(collection);
  const { count } = await run(makeReadIntent(collection, { select, conditions: await writeConditions(parsed, run) }));
  if (count === 0) throw await explainNothingWritten(parsed, select, run);
}

/** Refuses what could not be understood later either. */
export async function checkAction(parsed: ResourceRequest): Promise<void> {
  await parseAction(parsed);
}

async function parseAction(parsed: ResourceRequest) {
  const { collection, action } = parsed.target;
  const { links } = parseRowParameters(parsed.parameters, parameterContext(parsed), { choosing: false });
  const givesOwnRow = returnsRowOf(collection, action!.routine);
  return { links, givesOwnRow, intent: await makeCallIntent(parsed, givesOwnRow) };
}

async function makeCallIntent(parsed: ResourceRequest, givesOwnRow: boolean): Promise<CallIntent> {
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
    selection: toShape({ select: givesOwnRow ? selectEveryField(collection) : [] }),
    count: null,
    page: null,
    readOnly: false,
    row: { of: targetOf(collection.table), conditions: rowConditions({ collection, key: key!, nested }, parents) },
  };
}

/** Without a body there are none. */
async function readArguments(parsed: ResourceRequest): Promise<ReadonlyMap<string, JsonMember>> {
  const bytes = await readResourceBody(parsed);
  if (bytes.length === 0) return new Map();
  const { records } = await readBodyRecords(withBody(parsed, bytes));
  return records[0]!.members();
}

/** By the names that they have in SQL. */
function parseArguments(
  sent: ReadonlyMap<string, JsonMember>,
  action: RowAction,
  version: number,
): ReadonlyMap<string, SentMember> {
  const faults: FieldError[] = [];
  const names = action.arguments.map(({ name }) => name);
  const members = new Map<string, SentMember>();
  for (const [name, member] of sent) {
    const known = action.arguments.find((each) => each.name === name);
    if (!known) {
      faults.push({ field: name, message: `Unknown argument.${suggestName(name, names)}` });
      continue;
    }
    const read = readMember(known.argument.type, member);
    if (read.fault) faults.push({ field: name, message: `It ${read.fault}.` });
    members.set(known.argument.name!, read);
  }
  if (faults.length > 0) throw validationError(faults);
  // Postgres finds a variadic function by the places of its arguments alone: none is left out before one that is given.
  const isVariadic = action.arguments.some(({ argument }) => argument.mode === "variadic");
  const lastPlaced = isVariadic ? action.arguments.findLastIndex(({ name }) => sent.has(name)) : 0;
  const missing = action.arguments
    .filter(({ name, argument }, at) => (argument.required || at < lastPlaced) && !sent.has(name))
    .map(({ name }) => ({ field: name, message: "This argument is required." }));
  if (missing.length > 0) throw validationError(missing, errorCodesOf(version).missingField);
  return members;
}
