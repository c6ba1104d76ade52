import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { expectAccessibleLayouts } from "../page-layouts.ts";
import { MailFolder } from "../rest-gateway/sign-in/auth-v1/mail-folder.ts";
import { describeInBrowser, openStudio } from "./studio.ts";

describeInBrowser("the templates of e-mails", () => {
  let page: Page;
  const mails = useFixture(() => MailFolder.open());
  const studio = useFixture(() =>
    openStudio({ path: "/studio/people/templates/recovery", settings: { MAIL_DIR: mails.path } }),
  );
  beforeAll(async () => {
    page = studio.page;
    await page.getByLabel("Subject").waitFor();
  });

  const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
  const preview = () => page.getByRole("region", { name: "Preview" });
  const shown = () => page.frameLocator("iframe.email-frame").locator("body");

  test("show the e-mail in force, with the values of an example", async () => {
    expect(await page.getByLabel("Subject").inputValue()).toBe("Set a new password");
    expect(await page.getByLabel("Text", { exact: true }).inputValue()).toContain("{{ .ConfirmationURL }}");
    await preview().getByText("or enter this code: 123456").waitFor();
  });

  test("are shown in a frame as they are typed, with their styles and without their scripts", async () => {
    await page.getByLabel("Subject").fill("Hello {{ .Data.first_name }}");
    await page
      .getByLabel("HTML")
      .fill(
        '<h1 style="color: rgb(1, 2, 3)">Code {{ .Token }}</h1><script>document.body.textContent = "run"</script>' +
          '<a href="{{ .ConfirmationURL }}">Open</a>',
      );
    await shown().getByRole("heading", { name: "Code 123456" }).waitFor();
    await preview().getByText("Hello Ada", { exact: true }).waitFor();
    const frame = (await (await page.locator("iframe.email-frame").elementHandle())!.contentFrame())!;
    expect(
      await frame.evaluate(() => ({
        origin: self.origin,
        color: getComputedStyle(document.querySelector("h1")!).color,
        sameSite: (() => {
          try {
            return parent.document.title;
          } catch {
            return null;
          }
        })(),
      })),
    ).toEqual({ origin: "null", color: "rgb(1, 2, 3)", sameSite: null });
    await shown().getByRole("link", { name: "Open" }).click();
    expect(new URL(frame.url()).pathname).toBe("/studio/app/email-frame.html");
    expect(await shown().innerText()).not.toContain("run");
  });

  test("that cannot be used are refused, with the values that there are", async () => {
    const text = page.getByLabel("Text", { exact: true });
    const before = await text.inputValue();
    await text.fill("Code: {{ .Tokn }}");
    const alert = preview().getByRole("alert");
    await alert.waitFor();
    expect(await alert.textContent()).toMatch(/\{\{ \.Tokn \}\} is not a variable; the variables are/);
    await press("Save");
    await expect.poll(() => page.getByRole("alert").count()).toBe(2);
    await text.fill(before);
  });

  test("are sent as a sample, saved, kept after a reload, and replaced by the default one", async () => {
    await press("Send a test e-mail");
    await page.getByRole("dialog").getByLabel("E-mail address").fill("eve@example.org");
    await page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
    expect(await mails.receiveOne("eve@example.org")).toMatchObject({ subject: "Hello Ada" });

    await press("Save");
    await page.getByText("The e-mail is saved.").waitFor();
    await page.reload();
    await expect.poll(() => page.getByLabel("Subject").inputValue()).toBe("Hello {{ .Data.first_name }}");
    const link = page.getByRole("link", { name: /^Recovery/ });
    expect(await link.textContent()).toContain("changed");
    await press("Use the default e-mail");
    await expect.poll(() => page.getByLabel("Subject").inputValue()).toBe("Set a new password");
    await expect.poll(() => link.textContent()).not.toContain("changed");
  });

  test("are accessible on a phone and on a large screen, light and dark", async () => {
    await page.getByRole("link", { name: "Invitation", exact: true }).click();
    await shown()
      .getByRole("heading", { name: /You are invited/ })
      .waitFor();
    await expectAccessibleLayouts(page, "people-templates");
  });
});
