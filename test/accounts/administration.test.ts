import { beforeAll, describe, expect, test } from "vitest";
import { Administration, createFirstAdministrator } from "../../accounts/administration.ts";
import { useFixture } from "../fixture.ts";
import { claimsOf, eventsOf, from, newEmail, newPerson, openAccounts, PASSWORD } from "./open-accounts.ts";

let administration: Administration;
const opened = useFixture(openAccounts);
beforeAll(async () => {
  administration = new Administration({ asOwner: opened.asOwner, policy: "standard" });
});

async function roleOf(username: string, password = PASSWORD): Promise<unknown> {
  const { accounts } = opened;
  const { accessToken } = await accounts.login({ username, password }, from(), accounts.tokens.open);
  return claimsOf(accessToken).role;
}

describe("the first administrator", () => {
  test("is not an account that was registered with that address before", async () => {
    const { email } = await newPerson(opened);
    const settings = { adminEmail: email, adminPassword: "Quartz-Bird-8", passwordPolicy: "standard" as const };
    await expect(createFirstAdministrator(opened.asOwner, settings)).rejects.toThrow(
      /exists already .* run: npm run user -- role <e-mail> admin$/,
    );
    expect(await roleOf(email)).toBe("authenticated");
  });

  test("has a password that meets the policy", async () => {
    await expect(administration.ensureAdministrator({ email: newEmail(), password: "easy" })).rejects.toMatchObject({
      code: "VALIDATION_ERROR",
    });
  });

  test("is created once by gateways that start concurrently", async () => {
    const email = newEmail();
    const others = Array.from({ length: 4 }, () => new Administration({ asOwner: opened.asOwner, policy: "standard" }));
    const made = await Promise.all(others.map((each) => each.ensureAdministrator({ email, password: PASSWORD })));
    expect(made.sort()).toEqual(["kept", "kept", "kept", "made"]);
    expect(await roleOf(email)).toBe("admin");
    expect(await administration.ensureAdministrator({ email: newEmail(), password: "easy" })).toBe("kept");
  });
});

describe("operators", () => {
  test("can add users and administrators with a verified address", async () => {
    const [email, boss] = [newEmail(), newEmail()];
    const { id } = await administration.add({ name: "Ada", email, role: "authenticated", password: PASSWORD });
    await administration.add({ name: "Boss", email: boss, role: "admin", password: PASSWORD });
    expect([await roleOf(email), await roleOf(boss)]).toEqual(["authenticated", "admin"]);
    expect(await opened.accounts.emailLinks.requestVerification(id, from())).toBeNull();
  });

  test("can give an account to a user without one, but not to a user with one", async () => {
    const email = newEmail();
    const { rows } = await opened.owner.query("insert into users (name, email) values ('Eve', $1) returning id", [
      email,
    ]);
    const member = { name: "Eve", email, role: "authenticated", password: PASSWORD };
    expect(await administration.add(member)).toEqual({ id: rows[0].id });
    expect(await roleOf(email)).toBe("authenticated");
    await expect(administration.add({ ...member, role: "admin" })).rejects.toMatchObject({ code: "TAKEN" });
    expect(await roleOf(email)).toBe("authenticated");
  });

  test("can disable, enable and promote users by user name or address", async () => {
    const { userId, email } = await newPerson(opened, { username: "promoted" });
    await administration.disable("promoted");
    await expect(roleOf(email)).rejects.toMatchObject({ code: "ACCOUNT_DISABLED" });
    await administration.enable(email);
    await administration.assignRole("promoted", "admin");
    expect(await roleOf(email)).toBe("admin");
    await administration.assignRole("promoted", "authenticated");
    expect(await roleOf(email)).toBe("authenticated");
    expect(await eventsOf(opened, userId)).toEqual(
      expect.arrayContaining(["account.disabled", "account.enabled", "role.assigned"]),
    );
  });

  test("get an error for an unknown name or an invalid role", async () => {
    const { email } = await newPerson(opened);
    await expect(administration.disable("nobody")).rejects.toThrow('"nobody"');
    await expect(administration.assignRole(email, "service_role")).rejects.toMatchObject({
      code: "WRONG",
      detail: "role",
    });
  });
});
