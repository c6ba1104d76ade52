import { beforeAll, describe, expect, test } from "vitest";
import type { Catalog } from "../../catalog/catalog.ts";
import type { Relationship } from "../../catalog/relationships.ts";
import { useFixture } from "../fixture.ts";
import { makeFixture, tableOf } from "./fixture.ts";

let catalog: Catalog;
const fixture = useFixture(makeFixture);
beforeAll(async () => {
  catalog = await fixture.load();
});

/** `many-to-one directors by films_director (director_id=id)` */
function spell(relationship: Relationship): string {
  const { kind, target } = relationship;
  switch (relationship.kind) {
    case "many-to-many": {
      const { junction, sourceColumns, targetColumns, sourceConstraint, targetConstraint } = relationship;
      const there = sourceColumns.map((pair) => `${pair.source}=${pair.junction}`);
      const on = targetColumns.map((pair) => `${pair.junction}=${pair.target}`);
      return `${kind} ${target.name} by ${sourceConstraint}, ${targetConstraint} (${there} ${junction.name} ${on})`;
    }
    case "computed":
      return `computed ${target.name} by ${relationship.routine.name} (${relationship.toOne ? "one" : "many"})`;
    default:
      return `${kind} ${target.name} by ${relationship.constraint} (${relationship.columns.map((pair) => `${pair.source}=${pair.target}`)})`;
  }
}

const between = (from: string, to: string) => {
  const [source, target] = [tableOf(catalog, from), tableOf(catalog, to, to === "lookups" ? "extra" : "api")];
  return catalog.relationshipsBetween(source, target).map(spell);
};

describe("foreign keys", () => {
  test.each([
    [
      "films",
      "directors",
      [
        "many-to-one directors by films_director (director_id=id)",
        "many-to-one directors by films_second_director (second_director=id)",
        "computed directors by maker_of (one)",
      ],
    ],
    [
      "directors",
      "films",
      [
        "one-to-many films by films_director (id=director_id)",
        "one-to-many films by films_second_director (id=second_director)",
      ],
    ],
    ["technical_specs", "films", ["one-to-one films by technical_specs_film (film_id=id)"]],
    ["films", "technical_specs", ["one-to-one technical_specs by technical_specs_film (id=film_id)"]],
    [
      "films",
      "films",
      ["one-to-many films by films_sequel (id=sequel_of)", "many-to-one films by films_sequel (sequel_of=id)"],
    ],
    ["events", "films", ["many-to-one films by events_film (film_id=id)"]],
    ["events_2026", "films", []],
    ["films", "lookups", []],
  ])("from %s to %s", (from, to, expected) => {
    expect(between(from, to)).toEqual(expected);
  });

  test("the table with the foreign key is known in a one-to-one relationship", () => {
    const keyAt = (from: string, to: string) => {
      const [found] = catalog.relationshipsBetween(tableOf(catalog, from), tableOf(catalog, to));
      return found?.kind === "one-to-one" ? found.keyAt : null;
    };
    expect(keyAt("technical_specs", "films")).toBe("source");
    expect(keyAt("films", "technical_specs")).toBe("target");
  });

  test("two foreign keys within a primary key make a junction", () => {
    expect(between("films", "actors").filter((text) => text.startsWith("many-to-many"))).toEqual([
      "many-to-many actors by roles_film, roles_actor (id=film_id roles actor_id=id)",
    ]);
    expect(between("actors", "films")).toEqual([
      "many-to-many films by roles_actor, roles_film (id=actor_id roles film_id=id)",
    ]);
    expect(between("awards", "directors")).toEqual([]);
  });
});

describe("foreign keys with a period", () => {
  test("are no relationships, because their rows do not match by equal values", async ({ skip }) => {
    skip(catalog.server.version < 180000, "Postgres has them since 18");
    // Keys of ranges alone need no extension.
    await fixture.owner.query(`
      create table api.rooms (floors int4range, during daterange, primary key (floors, during without overlaps));
      create table api.bookings (floors int4range, during daterange,
        constraint bookings_room foreign key (floors, period during) references api.rooms (floors, period during));
      create table api.plans (film int constraint plans_film references api.films, during daterange)`);
    const now = await fixture.load();
    const fromTo = (from: string, to: string) =>
      now.relationshipsBetween(tableOf(now, from), tableOf(now, to)).map(spell);
    expect(fromTo("bookings", "rooms")).toEqual([]);
    expect(fromTo("rooms", "bookings")).toEqual([]);
    expect(fromTo("plans", "films")).toEqual(["many-to-one films by plans_film (film=id)"]);
  });
});

describe("views", () => {
  test.each([
    ["awards", "film_titles", ["many-to-one film_titles by awards_film (film_id=film)"]],
    ["film_titles", "awards", ["one-to-many awards by awards_film (film=film_id)"]],
    ["recent_films", "directors", ["many-to-one directors by films_director (director_id=id)"]],
    ["film_credits", "technical_specs", ["one-to-one technical_specs by technical_specs_film (id=film_id)"]],
    [
      "film_credits",
      "films",
      [
        "one-to-many films by films_director (director=director_id)",
        "one-to-many films by films_second_director (director=second_director)",
        "one-to-many films by films_sequel (id=sequel_of)",
      ],
    ],
    ["all_titles", "awards", []],
  ])("from %s to %s", (from, to, expected) => {
    expect(between(from, to)).toEqual(expected);
  });

  test("a column that a view selects twice has a relationship for each", () => {
    expect(between("film_pairs", "directors")).toEqual([
      "many-to-one directors by films_director (again=id)",
      "many-to-one directors by films_director (first=id)",
    ]);
  });

  test("views relate to each other by the keys of hidden tables, through hidden views and junctions too", () => {
    expect(between("accounts", "people")).toEqual([
      "many-to-one people by accounts_owner (owner=person)",
      "many-to-one people by accounts_referrer (referrer=person)",
    ]);
    expect(between("people", "clubs")).toEqual([
      "many-to-many clubs by members_person, members_club (person=person members club=id)",
    ]);
    expect(between("clubs", "people")).toEqual([
      "many-to-many people by members_club, members_person (id=club members person=person)",
    ]);
  });
});

describe("functions that take a row and return rows", () => {
  test("are relationships to exposed tables; one row at most is to-one", () => {
    expect(between("films", "actors").filter((text) => text.startsWith("computed"))).toEqual([
      "computed actors by cast_of (many)",
      "computed actors by star_of (one)",
    ]);
    expect(between("films", "people")).toEqual([]);
  });

  test("a function with a table's name replaces the foreign keys to that table", () => {
    expect(between("awards", "films")).toEqual(["computed films by films (one)"]);
  });
});

test("all relationships of a table can be listed, except those through junctions", () => {
  const listed = catalog.relationshipsOf(tableOf(catalog, "actors")).map(spell);
  expect(listed).toEqual(["one-to-many roles by roles_actor (id=actor_id)"]);
});

test("a table's own foreign keys are found without those that reference it", () => {
  for (const table of catalog.schemas.get("api")!.tables.values()) {
    const own = catalog.relationshipsOf(table).filter((each) => each.kind !== "computed" && each.keyAt === "source");
    expect(catalog.referencesFrom(table)).toEqual(own);
  }
  expect(catalog.referencesFrom(tableOf(catalog, "films")).map(spell)).toContain(
    "many-to-one films by films_sequel (sequel_of=id)",
  );
});

test("asking again returns the same object", () => {
  const films = tableOf(catalog, "films");
  expect(catalog.relationshipsOf(films)).toBe(catalog.relationshipsOf(films));
});
