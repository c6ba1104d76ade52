import { expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create domain public.stay as daterange;
    create table public.rooms (id int primary key, taken daterange, stay public.stay, opened tstzrange, shut tsrange, all_taken daterange[]);
    create function public.never() returns setof daterange language sql as 'select null::daterange';
    grant usage on schema public to anon;
    grant select on public.rooms to anon;
    grant execute on function public.never to anon;
    insert into public.rooms (id) values (1);
    insert into public.rooms values (2, '(,)', '[2026-01-01,)', '(,)', '(,)', array['[2026-01-01,)', null]::daterange[]);`,
});

const ROOM =
  "query ($id: ID!) { room(id: $id) { taken { ...days } stay { start { value } } opened { start { value } } shut { start { value } } allTaken { ...days } } } fragment days on DateRange { start { value } }";

test("a range that is null is null, and one without bounds is there", async () => {
  const NONE = { taken: null, stay: null, opened: null, shut: null, allTaken: null };
  expect(await generated.read(anonymous, ROOM, { id: 1 })).toEqual({ room: NONE });
  const days = { start: { value: "2026-01-01" } };
  const endless = { start: null };
  expect(await generated.read(anonymous, ROOM, { id: 2 })).toEqual({
    room: { taken: endless, stay: days, opened: endless, shut: endless, allTaken: [days, null] },
  });
});

test("a function may return one that is null", async () => {
  expect(await generated.read(anonymous, "mutation { never { start { value } } }")).toEqual({ never: [null] });
});
