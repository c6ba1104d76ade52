import { expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create domain public.moment as timestamptz;
    create domain public.late_moment as public.moment check (value > '2020-01-01');
    create function public.now_and_then(at public.moment, late public.late_moment) returns text stable language sql
      as 'select to_char(at, ''HH24:MI'') || '' '' || to_char(late, ''HH24:MI'')';
    create function public.past() returns public.late_moment stable language sql
      as $$ select '2026-01-01T12:00:00.5+02'::public.late_moment $$;
    grant usage on schema public to anon;
    grant execute on function public.now_and_then, public.past to anon;`,
});

test("a domain over timestamptz is returned in UTC", async () => {
  expect(await generated.read(anonymous, "{ past }")).toEqual({ past: "2026-01-01T10:00:00.500Z" });
});

test("a domain over timestamptz accepts times only", async () => {
  const ask = (at: string) =>
    generated.ask(anonymous, 'query ($at: Moment!) { nowAndThen(at: $at, late: "2026-01-01T12:00:00Z") }', { at });
  expect((await ask("2026-01-01 10:00")).data).toEqual({ nowAndThen: "10:00 12:00" });
  expect((await ask("yesterday")).faults).toMatchObject([{ message: expect.stringContaining("ISO 8601") }]);
});
