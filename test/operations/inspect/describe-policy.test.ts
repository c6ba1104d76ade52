import { describe, expect, test } from "vitest";
import { describeCondition, describePolicy } from "../../../operations/inspect/describe-policy.ts";

const policy = (properties: Partial<Parameters<typeof describePolicy>[0]>) =>
  describePolicy({
    command: "select",
    permissive: true,
    roles: ["authenticated"],
    using: "true",
    check: null,
    ...properties,
  });

describe("describePolicy", () => {
  test.each([
    [{}, "authenticated may select all rows"],
    [{ using: "(author_id = auth.uid())" }, "authenticated may select rows where author_id is the caller's id"],
    [{ roles: ["public"], command: "all" as const }, "everybody may select, insert, update and delete all rows"],
    [{ using: null, command: "update" as const }, "authenticated may update no rows"],
    [{ permissive: false, using: "is_public" }, "authenticated may only select rows where is_public is true"],
    [
      { command: "insert" as const, using: null, check: "(owner = ( SELECT auth.uid() AS uid))" },
      "authenticated may insert rows where owner is the caller's id",
    ],
    [{ command: "insert" as const, using: null, check: null }, "authenticated may insert all rows"],
    [
      { command: "update" as const, using: "(owner = auth.uid())", check: "(state = 'draft'::text)" },
      'authenticated may update rows where owner is the caller\'s id, and may write rows where state is "draft"',
    ],
    [{ roles: ["a", "b", "c"] }, "a, b and c may select all rows"],
    [{ using: "(a && b)" }, "authenticated may select rows where (a && b)"],
  ])("%j is: %s", (properties, sentence) => {
    expect(policy(properties)).toBe(sentence);
  });
});

describe("describeCondition", () => {
  test.each([
    ["(( SELECT auth.uid() AS uid) = user_id)", "user_id is the caller's id"],
    [
      "((status = 'published'::text) OR (author_id = ( SELECT auth.uid() AS uid)))",
      'status is "published" or author_id is the caller\'s id',
    ],
    ["((a = 1) AND ((b = 2) OR c))", "a is 1 and (b is 2 or c is true)"],
    ["(NOT hidden)", "hidden is false"],
    ["(NOT (a = 1))", "it is not true that a is 1"],
    ["(deleted_at IS NULL)", "deleted_at is null"],
    ["(ends_at > now())", "ends_at is greater than the current time"],
    ["((tenant)::text = (auth.jwt() ->> 'tenant'::text))", "tenant is the caller's claim tenant"],
    ["(kind = ANY (ARRAY['a'::text, 'b, c'::text]))", 'kind is one of "a", "b, c"'],
    ["( SELECT auth.is_admin() AS is_admin)", "the caller is an administrator"],
    ["((name)::text <> 'it''s OR not'::text)", 'name is not "it\'s OR not"'],
    ['("the owner" = auth.uid())', "the owner is the caller's id"],
    ["(tenant = current_setting('app.tenant'::text, true))", "tenant is the setting app.tenant"],
    [
      "(EXISTS ( SELECT 1 FROM members WHERE (members.id = auth.uid())))",
      "(EXISTS ( SELECT 1 FROM members WHERE (members.id = auth.uid())))",
    ],
    ["(size >= 10)", "size is at least 10"],
    ["auth.users_are_open()", "(auth.users_are_open())"],
  ])("%s is: %s", (condition, words) => {
    expect(describeCondition(condition)).toBe(words);
  });
});
