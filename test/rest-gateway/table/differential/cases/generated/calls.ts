import fc from "fast-check";
import { get, post } from "../../case.ts";
import { selection } from "./reads.ts";
import { numbers, words } from "./vocabulary.ts";

const document = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }));

export const calling = fc.oneof(
  fc.tuple(fc.oneof(numbers, words), numbers).map(([a, b]) => get(`/rpc/add?a=${a}&b=${b}`)),
  fc.subarray(["a=1", "b=x", "c=true", "d=4"]).map((given) => get(`/rpc/defaults?${given.join("&")}`)),
  fc
    .dictionary(fc.constantFrom("a", "b", "c", "d"), fc.oneof(fc.integer({ min: 0, max: 9 }), words, fc.boolean()))
    .map((body) => post("/rpc/defaults", body)),
  fc
    .array(words, { maxLength: 3 })
    .map((list) => get(`/rpc/join_words?${list.map((word) => `words=${word}`).join("&")}`)),
  fc.array(words, { maxLength: 3 }).map((list) => post("/rpc/join_words", { words: list })),
  fc.tuple(selection("works", 1), fc.integer({ min: 0, max: 4 })).map(([{ text, parameters }, limit]) => {
    const query = [`select=id,${text}`, "order=id", `limit=${limit}`, ...parameters].join("&");
    return get(`/rpc/all_works?${query}`, { prefer: "count=exact" });
  }),
  // Another case covers the characters that Postgres cannot store in a text (half a character, zero).
  document.filter((body) => !JSON.stringify(body).includes("\\u")).map((body) => post("/rpc/echo_json", body)),
);
