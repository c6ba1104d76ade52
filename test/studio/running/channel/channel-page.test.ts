import { expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { describeInBrowser, openStudio } from "../../studio.ts";

describeInBrowser("the page of a channel", () => {
  const studio = useFixture(() => openStudio({ path: "/studio/running" }));

  test("shows broadcasts and presence of a channel, and sends both", async () => {
    const { page } = studio;
    await page.getByRole("link", { name: "Channel", exact: true }).click();
    await page.getByLabel("Channel", { exact: true }).fill("lobby");
    await page.getByRole("button", { name: "Join" }).click();
    await page.getByText("Joined.").waitFor();
    await page.getByLabel("Payload (JSON)").fill('{"page": "first"}');
    await page.getByRole("button", { name: "Track", exact: true }).click();
    const present = page.getByRole("region", { name: "Present" });
    await present.getByText('{"page":"first"}').waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    const broadcast = page.getByRole("group", { name: /^broadcast at / });
    await broadcast.waitFor();
    expect(await broadcast.textContent()).toMatch(/"event": "message".*"page": "first"/s);
    await page.getByRole("button", { name: "Untrack" }).click();
    await present.getByText("Nobody is present.").waitFor();
    await page.getByRole("button", { name: "Leave" }).click();
    await page.getByRole("button", { name: "Join" }).waitFor();
    await page.getByRole("link", { name: "What is running" }).click();
    await page.getByRole("heading", { name: "Running", level: 1 }).waitFor();
  });
});
