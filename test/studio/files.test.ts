import type { Page } from "playwright-core";
import sharp from "sharp";
import { beforeAll, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { expectAccessible } from "../page-layouts.ts";
import { describeInBrowser, openStudio } from "./studio.ts";

describeInBrowser("the page of files", () => {
  let page: Page;
  const studio = useFixture(() => openStudio({ path: "/studio/files" }));
  beforeAll(async () => {
    page = studio.page;
    await page.getByRole("button", { name: "New bucket" }).waitFor();
  });

  const dialog = () => page.getByRole("dialog");
  const objects = () => studio.sql<{ name: string }>('select name from storage.objects order by name collate "C"');
  const closeDialog = async () => {
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
  };

  test("creates a bucket, and links to the policies", async () => {
    await page.getByRole("button", { name: "New bucket" }).press("Enter");
    await dialog().getByLabel("Name").fill("no/bucket");
    await page.keyboard.press("Enter");
    await dialog().getByRole("alert").waitFor();
    await dialog().getByLabel("Name").fill("pictures");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "pictures" }).waitFor();
    const policies = await studio.open("/studio/files");
    await policies.getByRole("link", { name: "Policies" }).click();
    await expect.poll(() => policies.getByText("admin_all").first().isVisible()).toBe(true);
    await policies.close();
  });

  test("uploads by the button and by a drop, and refuses a name that is taken", async () => {
    await page.getByRole("link", { name: "pictures" }).click();
    await page.getByText("This folder has no files").waitFor();
    const png = await sharp({ create: { width: 30, height: 20, channels: 3, background: "red" } })
      .png()
      .toBuffer();
    const files = [
      { name: "red.png", mimeType: "image/png", buffer: png },
      { name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("A note.") },
    ];
    await page.getByLabel("Files to upload").setInputFiles(files);
    await page.getByText("2 files are uploaded.").waitFor();
    const dropped = await page.evaluateHandle(() => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(["dropped"], "dropped.bin"));
      return transfer;
    });
    await page.locator(".drop-target").dispatchEvent("drop", { dataTransfer: dropped });
    await page.getByRole("button", { name: "dropped.bin" }).waitFor();
    expect((await objects()).map(({ name }) => name)).toEqual(["dropped.bin", "note.txt", "red.png"]);
    await page.getByLabel("Files to upload").setInputFiles(files.slice(0, 1));
    await page.getByRole("alert").getByText("The resource already exists").waitFor();
  });

  test("previews images and texts, with an address that everybody may read", async () => {
    await page.getByRole("button", { name: "red.png" }).click();
    const image = dialog().getByRole("img", { name: "Preview of red.png" });
    await image.waitFor();
    await page.waitForFunction(() => document.querySelector<HTMLImageElement>(".file-preview")!.naturalWidth === 30);
    await expectAccessible(page);
    const address = await dialog().getByRole("group", { name: "Public address" }).textContent();
    expect((await fetch(address!)).headers.get("Content-Type")).toBe("image/png");
    await closeDialog();
    await page.getByRole("button", { name: "note.txt" }).click();
    await dialog().getByText("A note.").waitFor();
    await closeDialog();
    await page.getByRole("button", { name: "dropped.bin" }).click();
    await dialog().getByText("Files of this type have no preview.").waitFor();
    await closeDialog();
  });

  test("deletes a file after a question", async () => {
    await page.getByRole("button", { name: "dropped.bin" }).click();
    await dialog().getByRole("button", { name: "Delete" }).click();
    await dialog().getByText("Delete dropped.bin?").waitFor();
    await dialog().getByRole("button", { name: "Delete" }).click();
    await dialog().waitFor({ state: "detached" });
    await page.getByRole("button", { name: "dropped.bin" }).waitFor({ state: "detached" });
    expect((await objects()).map(({ name }) => name)).toEqual(["note.txt", "red.png"]);
  });

  test("opens folders by their links, and shows the way back", async () => {
    await studio.sql("insert into storage.objects (bucket_id, name) values ('pictures', 'a b/c/deep.txt')");
    await page.reload();
    await page.getByRole("link", { name: "a b/" }).click();
    await page.getByRole("link", { name: "c/" }).click();
    await page.getByRole("button", { name: "deep.txt" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/studio/files/pictures/a%20b/c");
    await page.getByRole("link", { name: "All buckets" }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    await dialog().getByRole("button", { name: "Delete" }).click();
    await dialog().getByText("not empty").waitFor();
    await closeDialog();
  });
});
