import type { FieldFault } from "../../../engine/errors.ts";
import type { JsonMember } from "../../../engine/json/records.ts";
import type { GatewayResponse } from "../../http.ts";
import type { CallIntent } from "../../statement/intent.ts";
import { type Asked, type AskRows, readBody, withBody } from "../asked.ts";
import { isRow } from "../belonging.ts";
import { type Action, givesRowOf } from "../collections.ts";
import { readIntent, targetOf, toShape } from "../intents.ts";
import { nearMiss } from "../parse/near-miss.ts";
import { parseRowParameters } from "../parse/parameters.ts";
import { objectOf } from "../parse/payload.ts";
import { readMember, type SentMember } from "../parse/read-member.ts";
import { readBodyRecords } from "../parse/records.ts";
import { everyField } from "../parse/selected-fields.ts";
import { codesOf, invalid, noRow } from "../refusals.ts";
import { withLinks } from "../send/links.ts";
import { sendRow } from "../send/row.ts";
import { rememberRows } from "../sent-values.ts";
import { conditionsOf, whyNothing } from "./change.ts";
import { about } from "./read.ts";

/** Calls the function that takes the row. What gives a row of the collection is answered like one. */
export async function act(asked: Asked, ask: AskRows): Promise<GatewayResponse> {
  const { target, agreed } = asked;
  const { collection } = target;
  const { routine } = target.action!;
  const { links, givesOwnRow, intent } = await understand(asked);
  // A set may be empty though there is a row. Elsewhere the call itself tells that there is none.
  if (routine.returns.set || isConditional(asked)) await refuseUnlessAsKnown(asked, ask);
  const rows = await ask(intent);
  if (rows.count === 0 && !routine.returns.set) throw noRow(collection);
  if (routine.returns.shape === "void") return { status: 204, headers: {}, body: null };
  if (givesOwnRow && !routine.returns.set) {
    const linked = links || agreed.links ? await withLinks(rows.text, collection, asked, ask) : null;
    return sendRow(asked, { status: 200, text: rows.text, collection, select: everyField(collection), linked });
  }
  return { status: 200, headers: { "Content-Type": agreed.contentType }, body: rows.text };
}

function isConditional({ request: { headers } }: Asked): boolean {
  return ["if-match", "if-none-match", "if-unmodified-since"].some((name) => headers[name] !== undefined);
}

/** A look before the call: what the function does to the row meanwhile is its own business. */
async function refuseUnlessAsKnown(asked: Asked, ask: AskRows): Promise<void> {
  const { collection } = asked.target;
  const select = everyField(collection);
  const { count } = await ask(readIntent(collection, { select, conditions: await conditionsOf(asked, ask) }));
  if (count === 0) throw await whyNothing(asked, select, ask);
}

/** Refuses what could not be understood later either. */
export async function checkAct(asked: Asked): Promise<void> {
  await understand(asked);
}

async function understand(asked: Asked) {
  const { collection, action } = asked.target;
  const { links } = parseRowParameters(asked.parameters, about(asked), { choosing: false });
  const givesOwnRow = givesRowOf(collection, action!.routine);
  return { links, givesOwnRow, intent: await callIntent(asked, givesOwnRow) };
}

async function callIntent(asked: Asked, givesOwnRow: boolean): Promise<CallIntent> {
  const { collection, key, action, nested, parents } = asked.target;
  const given = parseArguments(await readArguments(asked), action!, asked.collections.version);
  const argument = {
    kind: "json",
    body: Buffer.from(objectOf(given)),
    names: [...given.keys()].sort(),
  } as const;
  rememberRows(argument, [given]);
  return {
    kind: "call",
    target: targetOf(action!.routine),
    argument,
    shape: toShape({ select: givesOwnRow ? everyField(collection) : [] }),
    count: null,
    page: null,
    readOnly: false,
    row: { of: targetOf(collection.table), conditions: isRow({ collection, key: key!, nested }, parents) },
  };
}

/** Without a body there are none. */
async function readArguments(asked: Asked): Promise<ReadonlyMap<string, JsonMember>> {
  const bytes = await readBody(asked);
  if (bytes.length === 0) return new Map();
  const { records } = await readBodyRecords(withBody(asked, bytes));
  return records[0]!.members();
}

/** By the names that they have in SQL. */
function parseArguments(
  sent: ReadonlyMap<string, JsonMember>,
  action: Action,
  version: number,
): ReadonlyMap<string, SentMember> {
  const faults: FieldFault[] = [];
  const names = action.arguments.map(({ name }) => name);
  const given = new Map<string, SentMember>();
  for (const [name, member] of sent) {
    const known = action.arguments.find((each) => each.name === name);
    if (!known) {
      faults.push({ field: name, message: `There is no such argument.${nearMiss(name, names)}` });
      continue;
    }
    const read = readMember(known.argument.type, member);
    if (read.fault) faults.push({ field: name, message: `It ${read.fault}.` });
    given.set(known.argument.name!, read);
  }
  if (faults.length > 0) throw invalid(faults);
  // Postgres finds a variadic function by the places of its arguments alone: none is left out before one that is given.
  const isVariadic = action.arguments.some(({ argument }) => argument.mode === "variadic");
  const lastPlaced = isVariadic ? action.arguments.findLastIndex(({ name }) => sent.has(name)) : 0;
  const missing = action.arguments
    .filter(({ name, argument }, at) => (argument.required || at < lastPlaced) && !sent.has(name))
    .map(({ name }) => ({ field: name, message: "This argument is required." }));
  if (missing.length > 0) throw invalid(missing, codesOf(version).missingField);
  return given;
}
