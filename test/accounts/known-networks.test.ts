import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { makeIsKnownNetwork } from "../../accounts/known-networks.ts";
import type { AsOwner } from "../../postgres/database/owner-pool.ts";
import { useFixture } from "../fixture.ts";
import { newAddress } from "../new-address.ts";
import { from, newEmail, newPerson, openAccounts, PASSWORD } from "./open-accounts.ts";

const opened = useFixture(openAccounts);

async function personAt(address: string) {
  const person = await newPerson(opened, { username: `person-${randomUUID()}` });
  const { accounts } = opened;
  await accounts.login({ username: person.email, password: PASSWORD }, from(address), accounts.tokens.open);
  return person;
}

test("a network is known where this user has signed in, by either name, and nowhere else", async () => {
  const isKnown = makeIsKnownNetwork(opened.asOwner);
  const [home, elsewhere] = [newAddress(), newAddress()];
  const { email, username } = await personAt(home);
  await personAt(elsewhere);
  expect(await isKnown(email, home)).toBe(true);
  expect(await isKnown(username.toUpperCase(), `::ffff:${home}`)).toBe(true);
  expect(await isKnown(email, elsewhere)).toBe(false);
  expect(await isKnown(newEmail(), home)).toBe(false);
});

test("an IPv6 network is known by any of its addresses", async () => {
  const isKnown = makeIsKnownNetwork(opened.asOwner);
  const { email } = await personAt("2001:db8:5:6::7");
  expect(await isKnown(email, "2001:db8:5:6:aaaa::1")).toBe(true);
  expect(await isKnown(email, "2001:db8:5:7::7")).toBe(false);
});

test("names that cannot be stored and addresses that are none are unknown, and others are still found", async () => {
  const isKnown = makeIsKnownNetwork(opened.asOwner);
  const home = newAddress();
  const { email } = await personAt(home);
  const asked = [isKnown("a\0b", home), isKnown("\ud800", home), isKnown(email, "nowhere"), isKnown(email, null)];
  expect(await Promise.all([...asked, isKnown(email, home)])).toEqual([false, false, false, false, true]);
});

test("logins that come at once are looked up by one query, and beyond a thousand they are unknown", async () => {
  const home = newAddress();
  const { email } = await personAt(home);
  let queries = 0;
  const asOwner: AsOwner = (work) => {
    queries++;
    return opened.asOwner(work);
  };
  const isKnown = makeIsKnownNetwork(asOwner);
  const answers = await Promise.all([
    isKnown(email, home),
    ...Array.from({ length: 1_000 }, () => isKnown(newEmail(), newAddress())),
    isKnown(email, home),
  ]);
  expect([queries, answers.indexOf(true), answers.lastIndexOf(true)]).toEqual([1, 0, 0]);
  expect(await isKnown(email, home)).toBe(true);
});
