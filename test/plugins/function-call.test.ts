import { describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { serveGraphQL, tokenFor } from "../graphql.ts";

const TABLE = `
  create table public.notes (
    id bigint generated always as identity constraint notes_pkey primary key,
    owner_id bigint not null default auth.uid() constraint notes_owner_id_fkey references public.users,
    text text);
  create index on public.notes (owner_id);
  grant select, insert, update on public.notes to authenticated;

  create function public.add_notes(texts text[]) returns setof public.notes language sql volatile as
    'insert into public.notes (text) select * from unnest(texts) returning *';
  create function public.find_no_note(text text) returns public.notes language plpgsql volatile as
    'begin insert into public.notes (text) values (text); return null; end';
  create function public.echo_texts(texts text[]) returns setof text language sql volatile as
    'insert into public.notes (text) select * from unnest(texts); select * from unnest(texts)';
  create function public.echo_list(texts text[]) returns text[] language sql volatile as 'select texts';
  create function public.forget_notes() returns void language sql volatile as 'update public.notes set text = null';
  create function public.notes_loud(note public.notes) returns text language plpgsql stable as
    $$ begin raise exception 'Not so loud' using errcode = 'WRONG'; end $$;
  grant execute on all functions in schema public to authenticated;
  comment on function public.find_no_note is '@nullable';
  comment on function public.echo_texts is '@nullable';
  insert into public.users (name, email) values ('Ann', 'ann@example.org');`;

const graphql = useFixture(() => serveGraphQL({ before: TABLE }));

const ask = async (query: string) => {
  const { data, errors } = await graphql.ask(query, { token: tokenFor(1) });
  expect(errors ?? []).toEqual([]);
  return data;
};
const texts = async () =>
  (await graphql.sql<{ text: string }>("select text from public.notes order by id")).map(({ text }) => text);

describe("a volatile function", () => {
  test.each([
    ["its type only", "{ __typename }"],
    ["nothing", "{ id @skip(if: true) }"],
  ])("is called once, whatever fields of its result are selected: %s", async (_, selection) => {
    const before = await texts();
    await ask(`mutation { addNotes(input: { texts: ["once"] }) ${selection} }`);
    expect(await texts()).toEqual([...before, "once"]);
  });

  test("is called once for each field in the operation, in order", async () => {
    await ask(
      'mutation { a: addNotes(input: { texts: ["same"] }) { id } b: addNotes(input: { texts: ["same"] }) { id } }',
    );
    expect((await texts()).slice(-2)).toEqual(["same", "same"]);
  });

  test("returns its rows in its order, with the relations as they are after the call", async () => {
    const { addNotes } = await ask(
      'mutation { addNotes(input: { texts: ["b", "a", "a \\"quoted\\", {odd} \\\\ one"] }) { text owner { name notes(limit: 100) { text } } } }',
    );
    const given = ["b", "a", 'a "quoted", {odd} \\ one'];
    expect(addNotes.map((note: { text: string }) => note.text)).toEqual(given);
    const seen = addNotes[0].owner.notes.map((note: { text: string }) => note.text);
    expect(seen).toEqual(expect.arrayContaining(given));
    expect(await ask("mutation { addNotes(input: { texts: [] }) { id } }")).toEqual({ addNotes: [] });
  });

  test("may return no row, empty texts and lists", async () => {
    expect(await ask('mutation { findNoNote(input: { text: "x" }) { id owner { name } } }')).toEqual({
      findNoNote: null,
    });
    expect(await ask('mutation { echoTexts(input: { texts: ["", "null", "NULL"] }) }')).toEqual({
      echoTexts: ["", "null", "NULL"],
    });
    expect(await ask('mutation { echoList(input: { texts: ["", "a,b"] }) }')).toEqual({ echoList: ["", "a,b"] });
    await ask("mutation { forgetNotes }");
    expect(new Set(await texts())).toEqual(new Set([null]));
  });

  test("is rolled back if its result cannot be read", async () => {
    const before = await texts();
    const { errors } = await graphql.ask('mutation { addNotes(input: { texts: ["unread"] }) { loud } }', {
      token: tokenFor(1),
    });
    expect(errors).toMatchObject([{ message: "Not so loud", path: ["addNotes"] }]);
    expect(await texts()).toEqual(before);
  });
});
