import { describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL } from "../../graphql.ts";

/** A dog has the key of an animal, which a key of the animals does not prevent. Of the two cats of a view, one comes first. */
const SCHEMA = `
  create table public.animals (id int primary key, name text, owner int unique);
  create table public.dogs (bark text) inherits (public.animals);
  create table public.visits (id int primary key, animal_id int not null references public.animals, note text);
  create view public.cats as select id, 'Cat' as name from public.visits, pg_catalog.generate_series(1, 2);
  comment on view public.cats is E'@primaryKey id\\n@foreignKey (id) references visits (id)';
  create table public.people (id int primary key references public.visits, animal_id int references public.animals (owner));
  insert into public.animals values (1, 'Animal', 1), (2, 'Alone', 2);
  insert into public.dogs values (1, 'Dog', 1, 'Woof');
  insert into public.visits values (10, 1, 'first'), (20, 2, 'second');
  insert into public.people values (10, 1);
  grant all on all tables in schema public to anon, authenticated`;

const served = useFixture(() => serveGraphQL({ template: "empty", before: SCHEMA }));
const ask = (query: string) => served.ask(query);
const animals = () => served.sql("select id, name from animals order by name");
const UNCHANGED = [
  { id: 2, name: "Alone" },
  { id: 1, name: "Animal" },
  { id: 1, name: "Dog" },
];

describe("a key that rows of several tables have", () => {
  test("leads to one row from a row that refers to it, and orders by one", async () => {
    const { data, errors } = await ask(
      "{ visits(orderBy: { animal: { name: DESC } }) { edges { node { id animal { name } } } } }",
    );
    expect(errors).toBeUndefined();
    expect(data).toEqual({
      visits: {
        edges: [
          { node: { id: "10", animal: { name: expect.stringMatching(/^(Animal|Dog)$/) } } },
          { node: { id: "20", animal: { name: "Alone" } } },
        ],
      },
    });
  });

  test("leads to one row by itself", async () => {
    const { data, errors } = await ask("{ animal(id: 1) { id } cat(id: 10) { name } }");
    expect(errors).toBeUndefined();
    expect(data).toEqual({ animal: { id: "1" }, cat: { name: "Cat" } });
  });

  test.each(['updateAnimal(id: 1, input: { name: "Other" }) { name }', "deleteAnimal(id: 1)"])(
    "does not change several rows: %s",
    async (field) => {
      const { errors } = await ask(`mutation { ${field} }`);
      expect(errors).toMatchObject([{ extensions: { code: "RESOURCE_CONFLICT" } }]);
      expect(await animals()).toEqual(UNCHANGED);
    },
  );

  test("changes the only row that has it", async () => {
    const { data, errors } = await ask('mutation { updateAnimal(id: 2, input: { name: "Alone" }) { name } }');
    expect([errors, data]).toEqual([undefined, { updateAnimal: { name: "Alone" } }]);
  });
});
