import { expect, test } from "vitest";
import { alice } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create unlogged table public.sessions (id int primary key, data text);
    create table public.visits (id int primary key, session_id int);
    insert into public.sessions values (1, 'one');
    grant usage on schema public to authenticated;
    grant select, insert, update, delete on all tables in schema public to authenticated`,
});

test("an unlogged table is read and written like any other", async () => {
  expect(await generated.read(alice, "{ sessions { edges { node { id data } } } session(id: 1) { data } }")).toEqual({
    sessions: { edges: [{ node: { id: "1", data: "one" } }] },
    session: { data: "one" },
  });
  const query = `mutation { createSession(input: {id: 2, data: "two"}) { data } deleteSession(id: 1) }`;
  expect(await generated.read(alice, query)).toEqual({ createSession: { data: "two" }, deleteSession: true });
});
