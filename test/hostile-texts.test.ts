import { expect, test } from "vitest";
import { rootAttribute } from "../accounts/federation/saml-message.ts";
import type { DataType } from "../catalog/data-types.ts";
import { makeIntrospectionAccess } from "../graphql/documents/introspection-access.ts";
import { parsePreconditions } from "../http/preconditions.ts";
import { mergeVary } from "../http/response.ts";
import { numberComparator } from "../realtime/changes/row-filter.ts";
import { readMember, textFault } from "../rest-gateway/resource/parse/values.ts";
import { readChanges } from "../rest-gateway/sign-in/auth-v1/admin-request.ts";

const LENGTH = 1_000_000;
const typeOf = (name: string) => ({ schema: "pg_catalog", name, kind: "base" }) as unknown as DataType;
const number = `1${"0".repeat(LENGTH)}1`;
const { redact } = makeIntrospectionAccess({ graphqlIntrospection: "off", anonRole: "anon" });

// A pattern that tries places or ways of a text one after the other takes minutes for a megabyte, or never ends.
test.each<[string, () => unknown, unknown]>([
  ["a duration", () => attempt(() => readChanges({ ban_duration: `${"0s000".repeat(LENGTH / 5)}!` })), "refused"],
  ["a number in a query", () => typeof textFault(typeOf("numeric"), `${"0".repeat(LENGTH)}I`), "string"],
  [
    "a number in a body",
    () => readMember(typeOf("int4"), { text: number, size: 1 } as never).text.length,
    number.length,
  ],
  [
    "a number of a row",
    () => numberComparator(typeOf("numeric"))!(`1.${"0".repeat(LENGTH)}1`, "1.0000000000000001") < 0,
    true,
  ],
  ["an entity tag", () => parsePreconditions({ "if-match": `"${"/".repeat(LENGTH)}` })[0]!.digests, []],
  ["a SAML message", () => rootAttribute("<<".repeat(LENGTH), "ID"), null],
  ["a value in a GraphQL error", () => redact(" Did you mean ".repeat(LENGTH / 14), "anon").length > LENGTH / 2, true],
  ["a header of a function", () => mergeVary(`${"\t".repeat(LENGTH)}a`), "a"],
])("%s that is long and hostile is read in linear time", (_text, read, expected) => {
  expect(read()).toEqual(expected);
});

function attempt(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    return "refused";
  }
}
