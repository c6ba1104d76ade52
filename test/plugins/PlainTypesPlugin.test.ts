import { expect, test } from "vitest";
import { alice } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create table public.cities (code char(5) primary key, aliases char(3)[]);
    create table public.flights (id int primary key, city char(5) references public.cities, gate char(4));
    insert into public.cities values ('B', '{X}');
    insert into public.flights values (1, 'B', 'A1');
    grant all on all tables in schema public to authenticated`,
});

test("values of char(n) are the same in rows, in rows within rows and in lists, with the blanks that SQL has", async () => {
  const flight = "{ gate cityId city { code aliases } }";
  const result = { gate: "A1  ", cityId: "B    ", city: { code: "B    ", aliases: ["X  "] } };
  expect(await generated.read(alice, `{ flight(id: 1) ${flight} city(code: "B") { code flights ${flight} } }`)).toEqual(
    { flight: result, city: { code: "B    ", flights: [result] } },
  );
});

test("a value of char(n) is found and written with its blanks or without", async () => {
  const input = '{ id: 2, city: "B", gate: "B22 " }';
  expect(
    await generated.read(
      alice,
      `mutation { createFlight(input: ${input}) { gate city { code } } updateFlight(id: 2, input: { gate: "C" }) { gate } }`,
    ),
  ).toEqual({ createFlight: { gate: "B22 ", city: { code: "B    " } }, updateFlight: { gate: "C   " } });
});
