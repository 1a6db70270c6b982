// Whether the page still waits for something: <main data-busy> is there until all of it has come.

let waiting = 0;

function tell(by) {
  waiting += by;
  const main = document.getElementById("main");
  if (waiting) main.dataset.busy = waiting;
  else delete main.dataset.busy;
}

export async function during(work) {
  tell(1);
  try {
    return await work;
  } finally {
    // Later, so that whoever waited for this has gone on, and asked for what it needs next.
    setTimeout(() => tell(-1));
  }
}

// Answers may come in another order than they were asked for in. Gives null for one that a newer
// question has overtaken, so that it is not shown in place of the newer answer.
export function newestOnly() {
  let asked = 0;
  return async (answer) => {
    const mine = ++asked;
    try {
      const found = await answer;
      return mine === asked ? found : null;
    } catch (error) {
      if (mine === asked) throw error;
      return null;
    }
  };
}
