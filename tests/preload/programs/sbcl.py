# SPDX-License-Identifier: BSD-2-Clause
"""sbcl: handlers of SIGSEGV for its collector, fixed addresses, threads, an image saved and run."""
import harness

SCRIPT = r'''
(defun f (n) (let ((l nil)) (dotimes (i n) (push (make-array 50 :initial-element i) l)) (length l)))
(print (f 300000)) (gc :full t) (print (f 100000))
(handler-case (labels ((r (n) (1+ (r (1+ n))))) (r 0)) (storage-condition () (print :stack)))
(handler-case (aref (make-array 3) (parse-integer "7")) (error () (print :index)))
(let ((ts (loop for i below 4 collect (sb-thread:make-thread (lambda () (f 100000))))))
  (print (mapcar #'sb-thread:join-thread ts)))
(print (with-output-to-string (s) (sb-ext:run-program "/bin/echo" '("sub") :output s)))
(finish-output)
(save-lisp-and-die "image" :executable t :toplevel (lambda () (print (f 100000)) (gc :full t) (exit :code 3)))
'''


def run(ctx):
    harness.need('sbcl')
    with open(ctx.path('script.lisp'), 'w', encoding='ascii') as f:
        f.write(SCRIPT)
    got = ctx.run(['sbcl', '--noinform', '--non-interactive', '--load', 'script.lisp'], record='status')
    ctx.record('said', got.out.decode().split('[undoing')[0])
    ctx.run([ctx.path('image')], label='image')
