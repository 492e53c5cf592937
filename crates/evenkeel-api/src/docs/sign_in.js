"use strict";
document.getElementById("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const refused = document.getElementById("refused");
  const token = document.getElementById("token").value.trim();
  try {
    const answer = await fetch("/api/docs", {
      headers: { Accept: "text/html", Authorization: "Bearer " + token },
      cache: "no-store",
      credentials: "omit",
    });
    if (!answer.ok) {
      refused.textContent = "The server refused the token (status " + answer.status + ").";
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.replaceChild(document.adoptNode(page.documentElement), document.documentElement);
  } catch (error) {
    refused.textContent = "The server can't be reached: " + error.message;
  }
});
