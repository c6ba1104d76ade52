import { describe, expect, test } from "vitest";
import { findRelationship } from "../../../planner/plan/relationship.ts";
import type { ApiError } from "../../../runtime/errors.ts";
import { catalog } from "../planner.ts";

function find(sourceName: string, wanted: string, role = "anon") {
  const [target, hint = null] = wanted.split("!") as [string, string?];
  const source = catalog.findTable({ schema: "api", name: sourceName }) ?? null;
  return findRelationship({ source, sourceName, schema: "api", target, hint }, catalog, role);
}

function spelled(source: string, wanted: string, role?: string): string {
  const found = find(source, wanted, role);
  const by =
    "constraint" in found ? found.constraint : found.kind === "computed" ? found.routine.name : found.junction.name;
  return `${found.kind} ${found.target.name} by ${by}`;
}

function refusal(source: string, wanted: string, role?: string): ApiError {
  try {
    find(source, wanted, role);
  } catch (error) {
    return error as ApiError;
  }
  throw new Error(`${source} is related to ${wanted}`);
}

describe("a relationship is found", () => {
  test.each([
    ["works", "artists", "many-to-one artists by works_artist_id_fkey"],
    ["works", "artist_id", "many-to-one artists by works_artist_id_fkey"],
    ["works", "works_artist_id_fkey", "many-to-one artists by works_artist_id_fkey"],
    ["works", "artists!works_artist_id_fkey", "many-to-one artists by works_artist_id_fkey"],
    ["works", "artists!artist_id", "many-to-one artists by works_artist_id_fkey"],
    ["works", "artists!id", "many-to-one artists by works_artist_id_fkey"],
    ["artists", "works", "one-to-many works by works_artist_id_fkey"],
    ["works", "labels", "one-to-one labels by labels_work_id_fkey"],
    ["labels", "works", "one-to-one works by labels_work_id_fkey"],
    ["placements", "rooms", "many-to-one rooms by placements_room_fkey"],
    ["exhibitions", "works", "many-to-many works by exhibits"],
    ["exhibitions", "people!curator_id", "many-to-one people by exhibitions_curator_fkey"],
    ["exhibitions", "exhibitions_deputy_fkey", "many-to-one people by exhibitions_deputy_fkey"],
    ["tours", "people!guides", "many-to-many people by guides"],
    ["people", "people", "one-to-many people by people_boss_id_fkey"],
    ["people", "boss_id", "many-to-one people by people_boss_id_fkey"],
    ["people", "people!boss_id", "one-to-many people by people_boss_id_fkey"],
    ["works", "maker", "computed artists by maker"],
    ["works", "maker!hint", "computed artists by maker"],
    ["artists", "masterpiece", "computed works by masterpiece"],
    ["exhibitions", "labels", "computed labels by labels"],
    ["work_list", "artist_list", "many-to-one artist_list by works_artist_id_fkey"],
    ["artists", "shown", "one-to-many shown by works_artist_id_fkey"],
    ["visits", "people", "many-to-one people by visits_person_fkey"],
  ])("from %s by %s: %s", (source, wanted, expected) => {
    expect(spelled(source, wanted)).toBe(expected);
  });
});

describe("a relationship is refused", () => {
  test.each([
    ["works", "rooms", "PGRST200"],
    ["works", "artists!nothing", "PGRST200"],
    ["placements", "rooms!room_floor", "PGRST200"],
    ["works", "works", "PGRST200"],
    ["people", "visits_2024", "PGRST200"],
    ["works", "loans", "PGRST200"],
    ["exhibitions", "people", "PGRST201"],
    ["tours", "people", "PGRST201"],
  ])("from %s by %s with %s", (source, wanted, code) => {
    expect(refusal(source, wanted).code).toBe(code);
  });

  test("with PostgREST's message if there is none", () => {
    expect(refusal("works", "artist!boss")).toMatchObject({
      kind: "invalid",
      message: "Could not find a relationship between 'works' and 'artist' in the schema cache",
      details:
        "Searched for a foreign key relationship between 'works' and 'artist' using the hint 'boss' in the schema 'api', but no matches were found.",
      hint: "Perhaps you meant 'artists' instead of 'artist'.",
    });
  });

  test("with the candidates if there are several", () => {
    expect(refusal("exhibitions", "people")).toMatchObject({
      kind: "ambiguous",
      message: "Could not embed because more than one relationship was found for 'exhibitions' and 'people'",
      details: [
        {
          cardinality: "many-to-one",
          embedding: "exhibitions with people",
          relationship: "exhibitions_curator_fkey using exhibitions(curator_id) and people(id)",
        },
        {
          cardinality: "many-to-one",
          embedding: "exhibitions with people",
          relationship: "exhibitions_deputy_fkey using exhibitions(deputy_id) and people(id)",
        },
      ],
      hint: "Try changing 'people' to one of the following: 'people!exhibitions_curator_fkey', 'people!exhibitions_deputy_fkey'. Find the desired relationship in the 'details' key.",
    });
  });

  test("with the junctions and their columns", () => {
    const details = refusal("tours", "people").details as { relationship: string }[];
    expect(details.map(({ relationship }) => relationship)).toContain(
      "visitors using visitors_tour_fkey(tour_id) and visitors_person_fkey(person_id)",
    );
  });
});

describe("a hint", () => {
  test("names the source if its name is wrong", () => {
    expect(refusal("exhibtions", "works").hint).toBe("Perhaps you meant 'exhibitions' instead of 'exhibtions'.");
  });

  test("finds a relationship through a junction", () => {
    expect(refusal("exhibitions", "work").hint).toBe("Perhaps you meant 'works' instead of 'work'.");
  });

  test("names no table that the caller may not see", () => {
    expect(refusal("works", "secret_thing", "authenticated").hint).toBe(
      "Perhaps you meant 'secret_things' instead of 'secret_thing'.",
    );
    expect(refusal("works", "secret_thing", "anon").hint ?? "").not.toContain("secret");
  });

  test("does not use a junction that the caller may not see, and then the relationship may be unambiguous", () => {
    expect(refusal("artists", "exhibitions", "authenticated").code).toBe("PGRST201");
    expect(spelled("artists", "exhibitions", "anon")).toBe("many-to-many exhibitions by open_links");
  });

  test("reveals no names to an unknown role", () => {
    expect(refusal("works", "artist", "nobody").hint).toBeNull();
  });
});
